"""The choice of tables that can be compared, and the reasons why others cannot."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pymysql.connections import Connection

from incsnap.config.settings import Settings
from incsnap.config.topics import table_with_same_keys
from incsnap.envelope.listed_keys import has_rounded_key, refusal_of_deletions, refusal_of_keys
from incsnap.errors import IncsnapError, ServerUnreachable
from incsnap.kafka.client_settings import ClientSettings
from incsnap.kafka.topics import admin_client, partition_counts
from incsnap.mysql import catalog
from incsnap.mysql.column_defaults import defaults_of
from incsnap.mysql.preflight import account, may_select
from incsnap.mysql.session import query
from incsnap.tables import TableId, TableShape
from incsnap.tasks.formats import format_of
from incsnap.types.spatial import GEOMETRIES
from incsnap.verify.record_reading import RecordForm, for_table
from incsnap.verify.table_side import VerifiedTable

#: Types of columns whose equal values have several spellings. No primary key can have them.
_NOT_IN_KEYS = frozenset({"json", "vector", *GEOMETRIES})


class TableRefused(Exception):
    """An error: a table cannot be compared."""


def shapes_to_compare(
    connection: Connection[Any], settings: Settings, captured: Sequence[TableId]
) -> dict[TableId, TableShape]:
    """Return the columns and keys of the captured tables, with defaults if the table side needs them."""
    shapes = catalog.shapes_of(connection, captured)
    if for_table(settings).asks_for_columns:
        defaults = defaults_of(connection, list(shapes), definitions=settings.columns.needs_definitions)
        shapes = {table: shape.with_defaults(defaults[table]) for table, shape in shapes.items()}
    return shapes


@dataclass(slots=True)
class ChosenTables:
    """The tables that are compared, those beside them in the same topics, and those that cannot be compared."""

    by_topic: dict[str, list[VerifiedTable]] = field(default_factory=dict)  #: tables of each topic
    refused: dict[TableId, str] = field(default_factory=dict)  #: reason, by table


def choose(
    connection: Connection[Any],
    settings: Settings,
    shapes: Mapping[TableId, TableShape],
    owners: Mapping[str, Sequence[TableId]],
    named: Collection[TableId],
) -> ChosenTables:
    """Return how the tables `named` are compared. `owners`: the captured tables of each topic.

    Tables of one topic are compared together, because a key does not tell the table. If one of them cannot be compared,
    none of them is.
    """
    counts = partition_counts(
        admin_client(ClientSettings(settings.kafka.bootstrap_servers, settings.kafka.producer)), owners
    )
    chosen, user = ChosenTables(), account(connection)
    compared = {*named, *(table for of_topic in owners.values() if {*of_topic} & {*named} for table in of_topic)}
    for table, shape in shapes.items():
        if table not in compared:
            continue
        # information_schema hides columns that the user may not read. Their values would look wrong in the records. A
        # table that is locked for a while is compared all the same: its SELECT is tried again.
        if (lack := may_select(connection, table, user)) is not None and lack.name == "privileges":
            chosen.refused[table] = f"{lack.problem}. {lack.repair}"
            continue
        try:
            verified = verified_table(connection, settings, shape, counts)
        except TableRefused as error:
            chosen.refused[table] = str(error)
        except ServerUnreachable:
            raise
        except IncsnapError as error:
            chosen.refused[table] = error.message
        else:
            if verified is not None:
                chosen.by_topic.setdefault(verified.topic, []).append(verified)
    for of_topic in owners.values():
        refuse_together(chosen, [table for table in of_topic if table in compared])
    return chosen


def refuse_together(chosen: ChosenTables, tables: Sequence[TableId]) -> None:
    """Refuse all `tables`, which have one topic, if one of them is refused or their records have different forms."""
    members = {
        each.shape.id: each for of_topic in chosen.by_topic.values() for each in of_topic if each.shape.id in tables
    }
    refused = next((table for table in tables if table in chosen.refused), None)
    # The settings of a registry have no hash.
    forms = [(each.form, each.partitions) for each in members.values()]
    if refused is not None:
        why = f"{refused} goes to the same topic, and cannot be compared: {chosen.refused[refused]}"
    elif any(each != forms[0] for each in forms):
        why = f"The tables {', '.join(map(str, tables))} send records of different forms to one topic."
    else:
        return
    for table, each in members.items():
        chosen.by_topic[each.topic] = [other for other in chosen.by_topic[each.topic] if other is not each]
        chosen.refused[table] = why
    for topic in [topic for topic, of_topic in chosen.by_topic.items() if not of_topic]:
        del chosen.by_topic[topic]


def refusals_of_repair(settings: Settings, shape: TableShape, beside: Sequence[TableId]) -> tuple[str, str]:
    """Return why a job cannot read rows of a table again by keys, and why it cannot send deletions; "" if it can.

    `beside`: other tables of the same topic.
    """
    format_ = format_of(for_table(settings), shape)
    deletions = refusal_of_deletions(format_)
    if not deletions and (same := table_with_same_keys(settings, shape.id, beside)) is not None:
        deletions = f"{same} has the same topic, and a key does not tell the table"
    return refusal_of_keys(format_), deletions


def verified_table(
    connection: Connection[Any], settings: Settings, shape: TableShape, counts: Mapping[str, int]
) -> VerifiedTable | None:
    """Return how a table is compared; None for a table without rows whose topic does not exist.

    Raise TableRefused if the table cannot be compared, and errors of its format.
    """
    format_ = format_of(for_table(settings), shape)
    form = RecordForm.of(format_, settings.formats)
    if not format_.view.key or not format_.view.identity:
        raise TableRefused("It has no primary key, so its records have no keys.")
    if has_rounded_key(format_):
        raise TableRefused("Rows of different keys may have one record key, because the settings round a column.")
    if odd := [field.name for field in format_.view.key if field.column.type in _NOT_IN_KEYS]:
        raise TableRefused(f"No condition in SQL finds rows by {', '.join(odd)}, which message.key.columns names.")
    if settings.skipped_operations - {"t"}:
        raise TableRefused("skipped.operations leaves changes out of its topic.")
    if format_.topic not in counts:
        if not query(connection, f"SELECT 1 FROM {shape.id.sql} LIMIT 1"):
            return None
        raise TableRefused(f"Topic {format_.topic} does not exist.")
    return VerifiedTable(shape, format_.topic, counts[format_.topic], form)


def without_defaults(shape: TableShape) -> TableShape:
    """Return the shape as the catalogue gives it, without defaults."""
    return TableShape(shape.id, shape.columns, shape.key)
