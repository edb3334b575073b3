"""Templates of one table's keys and rows, for tables that have a few changed rows each.

Records of such tables are built as one batch: each step runs once for all tables. The other tables are encoded one by
one, with the same bytes. These are tables whose records go to several topics, or whose values are no bytes.
"""

from __future__ import annotations

from dataclasses import dataclass

from incsnap.envelope.avro_format import AvroRows
from incsnap.envelope.format import JoinedFormat
from incsnap.envelope.json_format import JsonRows
from incsnap.envelope.proto_format import ProtoRows
from incsnap.envelope.record_encoder import CHANGES
from incsnap.envelope.row_template import RowTemplate
from incsnap.envelope.table_format import TableFormat
from incsnap.envelope.value_texts import json_template
from incsnap.transforms.record_spec import ChangedColumns


@dataclass(frozen=True, slots=True, eq=False)
class TableTemplates:
    """The templates of one table, for building its records together with those of other tables."""

    format: TableFormat  #: the table's format
    key: RowTemplate | None  #: None for a table without a key
    row: RowTemplate  #: of `before` and `after`, or of a flat row
    identity: RowTemplate | None  #: None if the key identifies rows
    shown: RowTemplate | None  #: the row as skip.messages.without.change compares it; None if that setting is off
    record_bytes: int  #: estimated bytes of a record besides its row and its source block


def table_templates(format_: TableFormat) -> TableTemplates | None:
    """Return the table's templates; None if its records cannot be built together with those of other tables."""
    # Tables in which an update changes a row's key are encoded alone, so the encoders of such records do not matter.
    sent = list(dict.fromkeys(one for kind in CHANGES[:4] if (one := format_.encoders[kind]) is not None))
    if not format_.uniform or format_.updates or not sent or any(one.kept is not None for one in sent):
        return None
    if any(isinstance(header, ChangedColumns) for one in sent for header in one.spec.headers):
        return None
    values, key = [one.value for one in sent if one.value is not None], sent[0].key
    joined = [each for each in values if isinstance(each, JoinedFormat)]
    templates = [each.template() for each in joined]
    if len(joined) < len(values) or any(each != templates[0] for each in templates):
        return None
    if not isinstance(key, JsonRows | AvroRows | ProtoRows | None):
        return None
    view, envelope = format_.view, format_.envelope
    return TableTemplates(
        format_,
        None if key is None else key.template(),
        templates[0] if templates else RowTemplate(b"", ()),
        format_.identity_template(),
        json_template(view.fields, envelope.modes) if envelope.skip_unchanged else None,
        max((each.constant_bytes for each in joined), default=0),
    )
