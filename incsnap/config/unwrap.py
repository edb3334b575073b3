"""Settings of Debezium's ExtractNewRecordState, which can add fields and headers from the envelope."""

from __future__ import annotations

from incsnap.config.declarations.kinds import one_of
from incsnap.config.older_names import OF_DELETIONS, TOMBSTONE_HANDLING, TOMBSTONES, tombstone_handling
from incsnap.config.patterns import split_list
from incsnap.config.reader import SettingsReader
from incsnap.config.settings import Formats
from incsnap.envelope.added_fields import is_known
from incsnap.transforms.chain import Chain
from incsnap.transforms.content_router import ContentBasedRouter
from incsnap.transforms.outbox import EventRouter
from incsnap.transforms.record_spec import EnvelopeField, Route
from incsnap.transforms.unwrap import MODES, ExtractNewRecordState

_STRUCTS = ("before", "after", "source", "transaction")
_OF_TRANSACTIONS = ("id", "total_order", "data_collection_order")
_OF_ENVELOPES = ("op", "ts_ms", "ts_us", "ts_ns")


def extract_new_record_state(reader: SettingsReader, name: str) -> ExtractNewRecordState:
    """Return the transform `name`. Add problems to `reader`."""
    start = f"transforms.{name}."
    reader.read_nulls(start, "true")
    _refuse_older_options(reader, start)
    return ExtractNewRecordState(
        reader.read(start + "delete.tombstone.handling.mode", one_of(*MODES), MODES[0]),
        _references(reader, start + "add.fields"),
        _references(reader, start + "add.headers"),
        Route(name, column) if (column := reader.text(start + "route.by.field")) else None,
    )


_NO_ENVELOPES = (ExtractNewRecordState, EventRouter)


def problems(chain: Chain, formats: Formats) -> list[str]:
    """Return a problem, as text, for each converter that the transforms rule out.

    With `route.by.field`, and with a ContentBasedRouter that asks for columns, each row decides its topic. But schemas
    are registered by topic, before rows are read. An empty list means that all is well.
    """
    routes = [step.transform.route for step in chain if isinstance(step.transform, ExtractNewRecordState)]
    avro = [side for side, choice in (("key", formats.key), ("value", formats.value)) if choice.is_registered]
    by_columns = [step.transform for step in chain if isinstance(step.transform, ContentBasedRouter)]
    routed = [
        *(f"{route.name}.route.by.field" for route in routes if route is not None),
        *(f"{router.name}.topic.expression" for router in by_columns if router.asks_for_columns),
    ]
    if formats.value.kind == "cloudevents" and any(isinstance(each.transform, _NO_ENVELOPES) for each in chain):
        return [
            "value.converter: CloudEventsConverter needs Debezium's envelope, and ExtractNewRecordState or EventRouter"
            " takes it away. Set JsonConverter, or remove the transform"
        ]
    return [
        f"transforms.{setting}: schemas are registered by topic, before rows are read, so"
        f" {side}.converter cannot have a schema registry. Set JsonConverter, or send tables to topics by a RegexRouter"
        for setting in routed
        for side in avro
    ]


def _refuse_older_options(reader: SettingsReader, start: str) -> None:
    """Add a problem for the older options of deletions. The problem names the present value that means the same."""
    given = [option for option in OF_DELETIONS if reader.given(start + option)]
    if not given:
        return
    options = {option: reader.text(start + option) for option in given}
    mode = tombstone_handling(options, tombstones=reader.text(TOMBSTONES, "true").strip().lower() != "false")
    meant = f"{TOMBSTONE_HANDLING}={mode}, which means the same" if mode else f"{TOMBSTONE_HANDLING}"
    for option in given:
        reader.problems.append(
            f"{start}{option}: not supported; Debezium 3 does not have it either. Set {start}{meant}"
        )


def _references(reader: SettingsReader, setting: str) -> tuple[EnvelopeField, ...]:
    """Return the fields of the list `setting` (`add.fields` or `add.headers`).

    Warn of fields that MySQL's records lack.
    """
    prefix = reader.text(f"{setting}.prefix", "__") if not _is_empty(reader, f"{setting}.prefix") else ""
    references: list[EnvelopeField] = []
    absent: list[str] = []
    for text in split_list(reader.text(setting)):
        reference = _reference(reader, setting, prefix, text)
        if reference is None:
            continue
        if is_known(reference):
            references.append(reference)
        else:
            absent.append(text)
    if absent:
        reader.warnings.append(f"{setting}: records of MySQL have no {', '.join(absent)}; left out, as by Debezium")
    twice = sorted({each.name for each in references if [other.name for other in references].count(each.name) > 1})
    if twice and setting.endswith("fields"):
        reader.problems.append(f"{setting}: two fields are called {', '.join(twice)}; write another name after a :")
    return tuple(references)


def _is_empty(reader: SettingsReader, name: str) -> bool:
    """Return True if the file sets `name` to an empty text, which means an empty prefix here."""
    return name in reader.names() and not reader.given(name)


def _reference(reader: SettingsReader, setting: str, prefix: str, text: str) -> EnvelopeField | None:
    """Return the field that `text` names, for example `source.ts_ms:when`, or None if there is a problem."""
    path, _, new = text.partition(":")
    parts = path.split(".")
    field = parts[0] if len(parts) == 1 else parts[1]
    struct = _struct_of(field) if len(parts) == 1 else parts[0]
    if not field or ":" in new:
        reader.problems.append(f"{setting}: {text!r} is not of the form field, struct.field or field:name")
        return None
    if field in _STRUCTS or struct in ("before", "after"):
        reader.problems.append(
            f"{setting}: {text!r} cannot be added. Possible are op, ts_ms, and fields of source and transaction"
        )
        return None
    if struct not in ("", "source", "transaction"):
        reader.problems.append(f"{setting}: {text!r}: unknown struct {struct}; known are source and transaction")
        return None
    plain = field if len(parts) == 1 else f"{struct}_{field}"
    if struct == "source" and field == "op":
        # The source block has no `op`; take the envelope's.
        struct = ""
    return EnvelopeField(struct, field, prefix + (new or plain))


def _struct_of(field: str) -> str:
    """Return the struct that holds `field`: `transaction`, `source`, or "" for the envelope itself."""
    if field in _OF_TRANSACTIONS:
        return "transaction"
    return "" if field in _OF_ENVELOPES else "source"
