"""Topics that a column of the row names: route.by.field of ExtractNewRecordState, and which names Kafka allows."""

from __future__ import annotations

import re

import pyarrow as pa
import pyarrow.compute as pc

from incsnap.columns.arrow import Columns, TextArray
from incsnap.columns.variable import Ints, take
from incsnap.envelope.table_view import TableView
from incsnap.errors import ConfigError, ValueRefused
from incsnap.transforms.record_spec import RecordSpec, Route
from incsnap.types.modes import Modes

_NAME = re.compile(r"(?!\.{1,2}\Z)[a-zA-Z0-9._-]{1,249}\Z")
#: The characters that Java's String.trim removes.
BLANKS = "".join(map(chr, range(33)))


def is_topic_name(text: str) -> bool:
    """Return True if Kafka allows `text` as the name of a topic."""
    return _NAME.match(text) is not None


class RowTopics:
    """The topic of each row of a table, from the column that `route` names; the topic of `spec` if the column is NULL
    or blank.

    The topic of a deletion comes from the row before it. The constructor raises ConfigError if the table has no such
    column, or if the column is no text.
    """

    def __init__(self, view: TableView, spec: RecordSpec, route: Route, modes: Modes) -> None:
        self._table, self._route, self._modes = view.shape.id, route, modes
        self._else, self._before = spec.topic, spec.op == "d"
        field = next((each for each in view.fields if each.name == route.column), None)
        if field is None:
            raise self._wrong("is none of the columns that are written")
        if field.schema(modes).type != "string":
            raise self._wrong("is no text")
        self._field = field

    def changes(self, images: Columns, before: Ints, after: Ints) -> TextArray:
        """Return the topic of each record. `before`, `after`: indexes of row images."""
        index = before if self._before else after
        return self.reads([None if column is None else take(column, index) for column in images])

    def reads(self, columns: Columns) -> TextArray:
        """Return the topic of each row (`pa.string()`). Each distinct value of the column is checked once.

        Raise ValueRefused for a value that is no name of a topic.
        """
        values = self._field.connect(columns, self._modes).cast(pa.string()).dictionary_encode()
        names = pa.array([self._topic(value) for value in values.dictionary.to_pylist()], pa.string())
        return pc.fill_null(names.take(values.indices), self._else)

    def _topic(self, value: str) -> str:
        if not value.strip(BLANKS):
            return self._else
        if not is_topic_name(value):
            raise ValueRefused(
                f"{self._table}: transforms.{self._route.name}.route.by.field sends a row whose {self._route.column} is"
                f" {value!r} to a topic of this name, and Kafka allows no such name",
                "Let the column hold names of letters, digits, . _ - alone, or take the setting out.",
            )
        return value

    def _wrong(self, why: str) -> ConfigError:
        start = f"transforms.{self._route.name}"
        return ConfigError(
            f"{start}.route.by.field names {self._route.column}, which in {self._table} {why}",
            f"Name a text column; or let a predicate (TopicNameMatches) keep {start} to topics of tables that have it.",
        )
