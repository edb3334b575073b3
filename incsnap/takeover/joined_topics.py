"""The topics of captured tables, as the settings describe their records."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from incsnap.config.settings import Settings
from incsnap.config.topics import control_topics, topics_of
from incsnap.errors import IncsnapError, shorten
from incsnap.events import SchemaChange
from incsnap.planner.definitions import defines, redefined
from incsnap.tables import Column, TableId, TableShape
from incsnap.takeover.key_forms import KeyForm
from incsnap.takeover.record_places import PlaceForm
from incsnap.tasks.formats import format_of
from incsnap.verify.record_reading import for_table


@dataclass(frozen=True, slots=True)
class JoinedTopics:
    """The topics of captured tables."""

    forms: dict[str, PlaceForm]  #: form of the records, by topic
    key_forms: dict[str, KeyForm]  #: form of the keys, by topic
    keys: dict[str, tuple[str, ...]]  #: names of the columns of each table's key
    warnings: tuple[str, ...]  #: topics that cannot be read


def joined_topics(
    settings: Settings, shapes: Mapping[TableId, TableShape], changes: Sequence[SchemaChange]
) -> JoinedTopics:
    """Return the topics of captured tables, also of those that were dropped or renamed behind the connector's offset.

    `shapes`: the tables as they are now. `changes`: statements about captured tables behind the offset.
    """
    gone = _gone(settings, shapes, changes)
    forms, keys, warnings = dict[str, PlaceForm](), dict[str, tuple[str, ...]](), _unnamed(changes)
    by_topic = dict[str, list[TableShape]]()
    for table, shape in {**shapes, **gone}.items():
        twice = f"{table}: what the connector has sent behind its offset comes twice"
        try:
            format_ = format_of(for_table(settings), shape)
            keys[str(table)] = tuple(field.column.name for field in format_.view.key)
            form = PlaceForm.of(format_, settings.formats)
        except IncsnapError as error:
            warnings.append(f"{twice}: {error.message}")
            continue
        for topic in topics_of(settings, table):
            by_topic.setdefault(topic, []).append(shape)
            known = forms.setdefault(topic, form)
            if known != form:
                warnings.append(f"{twice}: {topic} also has records of another form")
            else:
                forms[topic] = known.with_table(form)
    key_forms = {
        topic: KeyForm(settings, tables, altered=any(redefined(each.id, changes) for each in tables))
        for topic, tables in by_topic.items()
    }
    others = control_topics(settings)
    forms = {topic: replace(form, has_others=topic in others) for topic, form in forms.items()}
    return JoinedTopics(forms, key_forms, keys, tuple(warnings))


def _gone(
    settings: Settings, shapes: Mapping[TableId, TableShape], changes: Iterable[SchemaChange]
) -> dict[TableId, TableShape]:
    """Return the captured tables that statements name and that do not exist any more, with a stand-in for their shape.

    The form of records depends on the columns only where transforms name them.
    """
    present = {table.folded for table in shapes}
    named = {table for change in changes for table in change.tables or () if settings.tables.included(table)}
    return {
        table: TableShape(table, (Column("id", "int", nullable=False),), (0,))
        for table in sorted(named)
        if table.folded not in present
    }


def _unnamed(changes: Iterable[SchemaChange]) -> list[str]:
    """Return a warning for each statement that may have removed tables and does not name them, as DROP DATABASE."""
    return [
        f"{shorten(change.sql)}: what the connector has sent behind its offset of tables that this statement has"
        " removed comes twice, because the statement does not name them"
        for change in changes
        if change.tables is None and defines(change)
    ]
