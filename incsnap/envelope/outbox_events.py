"""The format of outbox events: topics, keys, values, headers and times from the columns of an outbox table.

The key of an event is the value of one column. The value of an event is the payload column alone, unless other columns
are placed beside it. A null has the schema of its column, so JSON writes it as the text `null`. As text or bytes, a
null is no value at all.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from incsnap.columns.arrow import Array, BytesArray, Columns, IntArray, MapArray, TextArray
from incsnap.columns.variable import Ints, take
from incsnap.connect.json_numbers import plain_text
from incsnap.connect.schema import Schema
from incsnap.envelope.added_fields import map_of
from incsnap.envelope.envelope_settings import EnvelopeSettings, FormatChoice
from incsnap.envelope.format import Changes
from incsnap.envelope.json_rows import Member, around, join, json_objects
from incsnap.envelope.outbox_payloads import ExpandedPayload
from incsnap.envelope.row_topics import BLANKS, is_topic_name
from incsnap.envelope.sources import SourceConstants
from incsnap.envelope.table_view import TableView, ViewField
from incsnap.errors import ConfigError, ValueRefused
from incsnap.transforms.record_spec import Added, Constant, OutboxEvent
from incsnap.transforms.replacement import replaced
from incsnap.types.modes import Modes

#: Types of schemas whose values have parts.
_NESTED = ("struct", "array", "map")
_DECIMAL = "org.apache.kafka.connect.data.Decimal"
#: Schemas that the time of an event may have -> how many of their units are a millisecond.
_TIMES = {
    "io.debezium.time.Timestamp": 1,
    "io.debezium.time.MicroTimestamp": 1_000,
    "io.debezium.time.NanoTimestamp": 1_000_000,
}
#: The repair for a column that must be bytes.
_BYTES = (
    "Make it a BLOB (with binary.handling.mode=bytes); or name io.debezium.converters.BinaryDataConverter with"
    " delegate.converter.type=org.apache.kafka.connect.json.JsonConverter, which writes the rest as JSON"
)


class EventFormat:
    """The format of the events of one outbox table.

    `headers` are those that records had before the router. The constructor raises ConfigError if the table lacks a
    column that `event` names, or if the column has a wrong type.
    """

    def __init__(
        self, view: TableView, event: OutboxEvent, envelope: EnvelopeSettings, headers: Sequence[Added] = ()
    ) -> None:
        self._table, self._event = view.shape.id, event
        self._modes, self._key_modes = envelope.value_modes, envelope.key_modes
        self._fields = {field.column.name: field for field in view.fields}
        self._route = self._field("route.by.field", event.route)
        if self._schema(self._route).type != "string":
            raise self._wrong("route.by.field", event.route, "is no text")
        self._key, self._key_is_plain = self._part("table.field.event.key", event.key, envelope.key)
        self._payload, self._value_is_plain = self._part("table.field.event.payload", event.payload, envelope.value)
        self._key_ends = around(self._key.schema(self._key_modes) if envelope.key.schemas else None)
        self._ends = around(self._schema(self._payload) if envelope.value.schemas else None)
        self._earlier = [(each.name, each.text) for each in headers if isinstance(each, Constant)]
        placement = "table.fields.additional.placement"
        placed = [each for each in event.placed if not (each.optional and each.column not in self._fields)]
        self._headers = [("id", self._header("table.field.event.id", event.id))] + [
            (each.name, self._header(placement, each.column)) for each in placed if each.place == "header"
        ]
        beside = [(each.name, self._field(placement, each.column)) for each in placed if each.place == "envelope"]
        #: The column with the partition, None without one. If several are named, the last one counts, as in Debezium.
        self._place = next(
            (self._number(placement, each.column) for each in reversed(placed) if each.place == "partition"), None
        )
        self._expanded: ExpandedPayload | None = None
        if event.expands and self._schema(self._payload).type == "string":
            self._expanded = ExpandedPayload(self._payload, event)
        self._schemas = envelope.value.schemas
        self._struct: list[Member] = [
            self._expanded or replace(self._payload, name="payload"),
            *(replace(field, name=name) for name, field in beside),
        ]
        self._time = self._time_field(event.timestamp) if event.timestamp else None

    # -- values of rows

    def keys(self, columns: Columns) -> BytesArray:
        """Return the key of each event (`pa.binary()`)."""
        if self._key_is_plain:
            return self._plain(self._key, columns)
        return self._alone(self._key, columns, self._key_ends, self._key_modes)

    def topics(self, columns: Columns) -> TextArray:
        """Return the topic of each event (`pa.string()`). Each distinct value of the column is checked once.

        Raise ValueRefused for a value that makes no name of a topic.
        """
        routes = self._route.connect(columns, self._modes).dictionary_encode()
        names = [self._topic(value) for value in routes.dictionary.to_pylist()]
        if routes.null_count:
            self._topic(None)
        return pa.array(names, pa.string()).take(routes.indices)

    def headers(self, columns: Columns) -> MapArray:
        """Return a map of header name to bytes for each event, as Connect's SimpleHeaderConverter writes them."""
        texts = [self._text(field, columns) for _, field in self._headers]
        earlier = [pa.repeat(pa.scalar(text.encode(), pa.binary()), len(texts[0])) for _, text in self._earlier]
        return map_of([name for name, _ in (*self._earlier, *self._headers)], [*earlier, *texts])

    def times(self, columns: Columns, now_us: int) -> IntArray:
        """Return the time of each event in milliseconds since 1970 (`pa.int64()`); the present time if the row has
        none.
        """
        now = pa.scalar(now_us // 1000, pa.int64())
        if self._time is None:
            return pa.repeat(now, next(len(column) for column in columns if column is not None))
        field, parts = self._time
        times = field.connect(columns, self._modes).cast(pa.int64())
        # Java divides towards zero, and so does Arrow.
        return pc.fill_null(pc.divide(times, parts), now)

    def own(self, columns: Columns, now_us: int) -> tuple[Array, ...]:
        """Return the columns by which a row says where its event goes (see `records.OWN`): topics, times, and
        partitions if a column holds them."""
        of_each = (self.topics(columns), self.times(columns, now_us))
        return of_each if self._place is None else (*of_each, self._place.connect(columns, self._modes))

    def reads(self, columns: Columns, source: SourceConstants, now_us: int) -> BytesArray:
        """Return the value of each row that a SELECT has read (`pa.binary()`)."""
        return self._values(columns)

    def changes(self, images: Columns, what: Changes) -> BytesArray:
        """Return the value of each record of `what` (`pa.binary()`)."""
        return self._values(self.rows(images, what.after))

    def rows(self, images: Columns, index: Ints) -> list[Array]:
        """Return the row images at `index`, as columns for the other methods."""
        return [None if column is None else take(column, index) for column in images]

    # -- encoding of columns

    def _values(self, columns: Columns) -> BytesArray:
        if self._event.in_envelope:
            values = json_objects(self._struct, columns, self._modes)
        elif self._expanded is not None:
            values = self._expanded.alone(columns, self._modes, schemas=self._schemas)
        elif self._value_is_plain:
            values = self._plain(self._payload, columns)
        else:
            values = self._alone(self._payload, columns, self._ends, self._modes)
        if not self._event.tombstones:
            return values
        payload = self._payload.connect(columns, self._modes)
        empty = payload.is_null()
        if self._schema(self._payload).type == "string":
            blank = pc.equal(pc.utf8_trim(payload, characters=BLANKS), "")
            empty = pc.or_(empty, pc.fill_null(blank, False))
        return pc.if_else(empty, pa.scalar(None, pa.binary()), values)

    def _alone(self, field: ViewField, columns: Columns, ends: tuple[str, str], modes: Modes) -> BytesArray:
        return join([ends[0], field.encode(columns, modes).complete(), ends[1]])

    def _plain(self, field: ViewField, columns: Columns) -> BytesArray:
        """Return the values as bytes (`pa.binary()`), null for null: bytes stay as they are, all else is text."""
        if self._is_bytes(field):
            return field.connect(columns, self._modes).cast(pa.binary())
        return self._text(field, columns)

    def _text(self, field: ViewField, columns: Columns) -> BytesArray:
        schema = self._schema(field)
        if schema.type == "string":
            return field.connect(columns, self._modes).cast(pa.binary())
        if schema.name == _DECIMAL:
            return plain_text(columns[field.index]).cast(pa.binary())
        return field.encode(columns, self._modes).text.cast(pa.string()).cast(pa.binary())

    def _topic(self, value: str | None) -> str:
        event = self._event
        topic = "" if value is None else replaced(event.regex, event.replacement, value)
        topic = value if topic is None else topic
        if topic is None or not is_topic_name(topic):
            raise ValueRefused(
                f"{self._table}: transforms.{event.name} sends an event whose {event.route} is {value!r} to the topic"
                f" {topic!r}, and Kafka allows no such name",
                f"Let transforms.{event.name}.route.topic.regex and route.topic.replacement make names of letters,"
                " digits, . _ - of all that the column may hold.",
            )
        return topic

    # -- checks of the table's columns

    def _schema(self, field: ViewField) -> Schema:
        return field.schema(self._modes)

    def _is_bytes(self, field: ViewField) -> bool:
        schema = self._schema(field)
        return schema.type == "bytes" and schema.name != _DECIMAL

    def _field(self, setting: str, column: str) -> ViewField:
        field = self._fields.get(column)
        if field is None:
            raise self._wrong(setting, column, "is none of the columns that are written")
        return field

    def _part(self, setting: str, column: str, choice: FormatChoice) -> tuple[ViewField, bool]:
        """Return the field of a key or a payload, and True if its values are written without JSON around them."""
        field = self._field(setting, column)
        type_, is_bytes = self._schema(field).type, self._is_bytes(field)
        if choice.kind == "text" and (is_bytes or type_ in _NESTED):
            raise self._wrong(setting, column, "has a type that is no text, which StringConverter is to write")
        if choice.kind == "bytes" and not is_bytes:
            raise self._wrong(setting, column, f"is written as {type_}, and the converter takes only bytes", _BYTES)
        return field, choice.kind == "text" or (is_bytes and (choice.raw or choice.kind == "bytes"))

    def _header(self, setting: str, column: str) -> ViewField:
        field = self._field(setting, column)
        if self._schema(field).type in _NESTED:
            raise self._wrong(setting, column, "has a type that no header can show")
        return field

    def _time_field(self, column: str) -> tuple[ViewField, int]:
        field = self._field("table.field.event.timestamp", column)
        parts = _TIMES.get(self._schema(field).name or "")
        if parts is None:
            raise self._wrong("table.field.event.timestamp", column, "is no DATETIME that is written as a number")
        return field, parts

    def _number(self, setting: str, column: str) -> ViewField:
        """Return the field with the partition. Debezium takes INT only."""
        field = self._field(setting, column)
        schema = self._schema(field)
        if schema.type != "int32" or schema.name is not None:
            raise self._wrong(setting, column, "is no INT, which the number of a partition must be")
        return field

    def _wrong(self, setting: str, column: str, why: str, repair: str = "Name a suitable column") -> ConfigError:
        start = f"transforms.{self._event.name}."
        return ConfigError(
            f"{start}{setting} names {column}, which in {self._table} {why}",
            f"{repair}; or let a predicate (TopicNameMatches) keep {start[:-1]} to the topic of the outbox table.",
        )
