"""The statements that alter the table of a DataFrame with described rows (`tasks.described_rows`).

`merge_into` needs them to carry columns into a lake's table. A batch ends with such a statement, so all rows of a batch
have the columns that the table had before the statement.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

import pyarrow as pa

from incsnap.checkpoint.control_records import ControlRecord
from incsnap.config.settings import Settings
from incsnap.config.topics import topics_of
from incsnap.connect.field_names import adjust_field
from incsnap.ddl.column_origins import defaults_behind
from incsnap.envelope.frame_format import described_fields
from incsnap.envelope.table_view import view_of
from incsnap.events import SchemaChange
from incsnap.mysql.catalog import shape_of
from incsnap.mysql.column_defaults import shape_with_defaults
from incsnap.planner.altered_tables import AlteredTable, statements_about
from incsnap.planner.definitions import DefinitionsAt, NotCertain, defines, redefined
from incsnap.tables import TableId, TableShape
from incsnap.tasks.change_marks import CHANGE_FIELDS
from incsnap.tasks.described_rows import Alteration


def alters_frame(settings: Settings, change: SchemaChange) -> bool:
    """Whether the statement may alter the table of a DataFrame with described rows."""
    table = _described_table(settings)
    if table is None or not defines(change) or not change.touches(table):
        return False
    return not change.online.hides(table) and not change.moves_away(table)


def alteration_records(
    settings: Settings, definitions: DefinitionsAt, changes: Sequence[SchemaChange]
) -> list[ControlRecord]:
    """Return the record of the batch's statement that alters the table of a DataFrame; [] if there is none.

    Its key is the Alteration. Its value describes the table behind the statement, or is null if that is not certain.
    """
    table = _described_table(settings)
    altering = [change for change in changes if alters_frame(settings, change)]
    if table is None or not altering:
        return []
    end = definitions.end
    id_ = f"{end.server_uuid}:{end.file}:{end.pos}"
    alterations = [_alteration(settings, table, change, id_) for change in altering]
    alteration = reduce(lambda before, later: later.behind(before), alterations)
    shape = _certain_shape(settings, table, definitions)
    value = None
    if shape is not None:
        fields = described_fields(view_of(shape, settings.columns), settings.modes)
        value = pa.schema([*CHANGE_FIELDS, *fields]).serialize().to_pybytes()
    return [ControlRecord(topics_of(settings, table)[0], alteration.to_json(), value)]


def _alteration(settings: Settings, table: TableId, change: SchemaChange, id_: str) -> Alteration:
    """Return the alteration of a DataFrame's table. Its columns have the names that the DataFrame gives them.

    The DEFAULTs of columns that are masked, hashed or cut are left out.
    """
    altered = AlteredTable(table).behind(change)
    defaults: dict[str, str] = {}
    for sql in statements_about(table, change):
        defaults |= defaults_behind(sql, change.session)

    def shown(column: str) -> str:
        return adjust_field(column, settings.columns.field_names).lower()

    plain = {name: text for name, text in defaults.items() if settings.columns.transform(f"{table}.{name}") is None}
    origins = None
    if altered.origins is not None:
        origins = {shown(name): former and shown(former) for name, former in altered.origins}
    return Alteration(id_, altered.sql, origins, {shown(name): text for name, text in plain.items()})


def _described_table(settings: Settings) -> TableId | None:
    frame = settings.frame
    return frame.table if frame is not None and frame.described else None


def _certain_shape(settings: Settings, table: TableId, definitions: DefinitionsAt) -> TableShape | None:
    """Return the table behind the batch; None if there is no such table, or if its definition is not certain."""
    connection = definitions.connection

    def present() -> TableShape | None:
        shape = shape_of(connection, table)
        needed = settings.columns.needs_definitions
        return None if shape is None else shape_with_defaults(connection, shape, definitions=needed)

    try:
        shape, later = definitions.answer(present)
    except NotCertain:
        return None
    return None if redefined(table, later) else shape
