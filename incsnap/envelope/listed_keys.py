"""Lists of record keys that a signal chooses: their form, the rows that they mean, and the keys that have no row.

A key has the form that a consumer holds: the JSON of the record's key. "Found" means the same record key. An index
that ignores letter case finds the row 'A' for the key 'a', and that row is another one.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from incsnap.columns.arrow import Array, BytesArray, RecordBatch
from incsnap.envelope.added_fields import change_values, header_maps
from incsnap.envelope.format import OPERATIONS, Changes
from incsnap.envelope.partitioner import bucket_of
from incsnap.envelope.record_encoder import READ, Operation, RecordEncoder
from incsnap.envelope.records import batch_of
from incsnap.envelope.sources import SourceColumns, SourceConstants
from incsnap.envelope.table_format import TableFormat
from incsnap.envelope.table_view import ViewField
from incsnap.errors import shorten
from incsnap.snapshot.keys import SharedText
from incsnap.tables import TEXTS, Column
from incsnap.transforms.record_spec import ValueShape
from incsnap.types.charsets import is_shared
from incsnap.types.column_type import describe
from incsnap.types.given_values import compared, printed
from incsnap.types.modes import Modes
from signals.exact_json import is_no_number_of_mysql

_DELETE = OPERATIONS.index("d")
_DELETION, _TOMBSTONE = Operation("d"), Operation("")
#: The values of a key for SQL, in the order of its columns; None is NULL.
SqlKey = tuple[str | None, ...]
#: Stands for NULL while None stands for a value that no row can have.
_NULL = "NULL"


class _SnapshotSource(SourceColumns):
    """The source of deletions that a snapshot has found."""

    snapshot = "incremental"


class KeyRefused(Exception):
    """An error: keys of the list cannot be used. The text says why."""


def refusal_of_keys(format_: TableFormat) -> str:
    """Return why rows of the table cannot be chosen by keys; "" if they can."""
    read = format_.encoders[READ]
    if not format_.view.key:
        return "its records have no key"
    if read is None or read.event is not None:
        return "its rows are outbox events or are not sent, so no record has the key of a row"
    if read.spec.key_edits or any(each.spec.key_edits for each in format_.change_encoders):
        return "a transform makes the keys of its records from other columns (ValueToKey, ExtractField$Key)"
    return ""


def refusal_of_deletions(format_: TableFormat) -> str:
    """Return why incsnap-absent=delete cannot be obeyed for the table; "" if it can."""
    view = format_.view
    if "d" in format_.envelope.skipped:
        return "skipped.operations leaves deletions out"
    if sorted(field.index for field in view.key) != sorted(view.identity):
        return "message.key.columns gives its records other keys than its primary key, so a key may belong to many rows"
    if has_rounded_key(format_):
        return "different rows may have the same record key, because the settings round a column of the key"
    if not format_.uniform:
        return "its records go to several topics or have keys of several forms"
    deletion = format_.encoders[_DELETION]
    if format_.envelope.marked:
        return "a DataFrame shows the deleted row, and the row is gone"
    if deletion is None:
        return ""
    if deletion.kept is not None or deletion.topics is not None:
        return "a transform decides by columns that a deleted row does not have any more"
    if deletion.value is not None and deletion.spec.value is not ValueShape.ENVELOPE:
        return "its deletions are sent as rows (delete.tombstone.handling.mode=rewrite), and the row is gone"
    return ""


def has_rounded_key(format_: TableFormat) -> bool:
    """Return True if different values of the key's columns may give the same record key, as the settings have it."""
    return any(field.boolean or _is_rounded(format_, field) for field in format_.view.key)


def _is_rounded(format_: TableFormat, field: ViewField) -> bool:
    modes, column = format_.envelope.key_modes, field.column
    if column.type == "decimal":
        return modes.decimal_handling == "double"
    if column.type in ("date", "datetime") and modes.time_adjuster == "true":
        return True
    if column.type == "time" and modes.time_precision == "isostring":
        return True  # 24:00:00 is written as 00:00:00Z
    return column.type in ("time", "datetime") and column.fraction > 3 and modes.time_precision == "connect"


@dataclass(frozen=True, eq=False)
class ListedKeys:
    """Keys of a list, for one table."""

    format_: TableFormat  #: of the table
    columns: list[Any]  #: canonical columns of the keys, by the table's columns; None for a column not in the key
    sql: Sequence[SqlKey]  #: the keys that a row can have, for conditions in SQL

    @classmethod
    def read(cls, format_: TableFormat, keys: Sequence[str]) -> ListedKeys:
        """Return the keys in `keys`, each the JSON of a record's key. Raise KeyRefused for a key of another form."""
        view, modes = format_.view, format_.envelope.key_modes
        given = _members(format_, keys)
        columns: list[Any] = [None] * len(view.shape.columns)
        for_sql: list[list[str | None]] = []
        for field in view.key:
            texts = _printed(field, modes, keys, given)
            raw = pa.array([text.encode() if isinstance(text, str) else text for text in texts], pa.binary())
            columns[field.index] = _canonical(field, keys, raw)
            # A key is as records have it if the value, written again, is the one that was given.
            again = _parsed(f"[{','.join(_written(field, columns, modes))}]")
            for key, members, value in zip(keys, given, again, strict=True):
                asked = members[field.name]
                if not _is_same(value, asked) and not _is_other_form(field.column, value, asked):
                    raise KeyRefused(_other_form(key, field.name, f"the record would have {shorten(value)}"))
            for_sql.append([_NULL if text is None else _for_sql(field.column, text) for text in texts])
        possible = (key for key in zip(*for_sql, strict=True) if None not in key)
        return cls(format_, columns, [tuple(None if each is _NULL else each for each in key) for key in possible])

    @cached_property
    def records(self) -> BytesArray:
        """The record keys (`pa.binary()`), in the order of the list."""
        return self.format_.keys(self.columns)

    def texts(self) -> list[str]:
        """Return the keys as compact JSON, each in one spelling: columns in the table's order, values as records."""
        modes, view = self.format_.envelope.key_modes, self.format_.view
        values = [_written(field, self.columns, modes) for field in view.key]
        names = [_COMPACT.encode(field.name) for field in view.key]
        rows = zip(*values, strict=True)
        return [f"{{{','.join(map('%s:%s'.__mod__, zip(names, row, strict=True)))}}}" for row in rows]

    def rows_among(self, columns: list[Any]) -> tuple[list[Any], Array]:
        """Return the rows of `columns` whose record key is in the list, and a mask of the keys that have no row."""
        own = self.format_.keys(columns)
        is_meant = pc.is_in(own, value_set=self.records)
        rows = [None if column is None else column.filter(is_meant) for column in columns]
        return rows, pc.invert(pc.is_in(self.records, value_set=own))


def read_key(content: str | bytes) -> str:
    """Return the JSON of a record's key as compact JSON, for lists. Raise KeyRefused as `key_text` does."""
    return key_text(parsed_key(content))


def parsed_key(content: str | bytes) -> Any:
    """Return the value of a key's JSON, with Decimals in place of floats. Raise KeyRefused if `content` is not JSON."""
    try:
        return _parsed(content)
    # A Decimal may not have an exponent of more than 18 digits.
    except (ValueError, RecursionError, ArithmeticError):
        text = content if isinstance(content, str) else content.decode(errors="replace")
        raise KeyRefused(f"{shorten(text)} is not the JSON of a key") from None


def key_text(value: object) -> str:
    """Return a key as compact JSON, for lists.

    A record's key with its schema ({"schema": ..., "payload": ...}) is its payload. Raise KeyRefused if the key is no
    object, has a list or an object in it, or is no text of UTF-8.
    """
    if isinstance(value, dict) and set(value) == {"schema", "payload"}:
        value = value["payload"]
    if not isinstance(value, dict) or not value:
        raise KeyRefused(f"{shorten(value)} is not the JSON of a record's key, such as {{'id': 5}}")
    if odd := [name for name, each in value.items() if isinstance(each, list | dict)]:
        raise KeyRefused(
            f"{', '.join(odd)} of the key {shorten(value)} is a list or an object, and no column of a key is"
        )
    members = (f"{_COMPACT.encode(name)}:{_member(each)}" for name, each in value.items())
    text = f"{{{','.join(members)}}}"
    try:
        text.encode()
    except UnicodeEncodeError:
        shown = text.encode("ascii", "backslashreplace").decode()
        raise KeyRefused(f"the key {shorten(shown)} holds half a character (a lone surrogate)") from None
    return text


def _member(value: object) -> str:
    """Return a value of a key as JSON, a number with all its digits. Raise KeyRefused for a value without such a form.

    A float keeps 53 bits. A rounded Decimal could be the key of another row.
    """
    if not isinstance(value, Decimal):
        return _COMPACT.encode(value)
    if is_no_number_of_mysql(value):
        raise KeyRefused(f"{shorten(value)} in a key is no number of MySQL")
    digits = f"{value:f}"
    return digits.rstrip("0").removesuffix(".") if "." in digits else digits


def _refuse(value: object) -> object:
    raise KeyRefused(f"{shorten(value)} in a key is no JSON")


#: Reads keys. `json.loads` would make a decoder for each key.
_DECODER = json.JSONDecoder(parse_float=Decimal)
#: Writes names and values of a key.
_COMPACT = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False, default=_refuse)


def _parsed(text: str | bytes) -> Any:
    if isinstance(text, bytes):
        text = text.decode(json.detect_encoding(text), "surrogatepass")
    return _DECODER.decode(text)


def _printed(
    field: ViewField, modes: Modes, keys: Sequence[str], given: Sequence[Mapping[str, Any]]
) -> list[str | bytes | None]:
    """Return the values of one column of the keys as MySQL prints them; None for NULL.

    Raise KeyRefused for a value of another form.
    """
    name, column, schema_name = field.name, field.column, field.schema(modes).name or ""
    texts: list[str | bytes | None] = []
    for key, members in zip(keys, given, strict=True):
        value = members[name]
        if value is None:
            if not column.nullable:
                raise KeyRefused(f"the key {shorten(key)} has no value for {name}")
            texts.append(None)
            continue
        try:
            texts.append(printed(column, schema_name, modes, value, boolean=field.boolean))
        except (ValueError, TypeError, KeyError, ArithmeticError) as error:
            raise KeyRefused(_other_form(key, name, error)) from None
    return texts


def _written(field: ViewField, columns: list[Any], modes: Modes) -> list[str]:
    """Return the JSON of a column's values, as records have it."""
    written: list[str] = field.encode(columns, modes).complete().fill_null("null").to_pylist()
    return written


def _for_sql(column: Column, text: str | bytes) -> str | None:
    """Return the text of `compared`, marked if other values of the column are shown as this text."""
    value = compared(column, text)
    if value is None or column.type not in TEXTS or not is_shared(value, column.charset):
        return value
    return SharedText(value)


def _of_snapshot(source: SourceConstants) -> SourceColumns:
    """Return the source of a snapshot's rows as that of one event."""
    return _SnapshotSource(
        gtid=pa.array([source.gtid], pa.string()),
        ts_us=np.array([source.ts_us]),
        server_id=np.array([source.server_id]),
        thread=pa.array([source.thread], pa.int64()),
        file=pa.array([source.file], pa.string()),
        pos=np.array([source.pos]),
        query=pa.array([source.query], pa.string()),
    )


def _members(format_: TableFormat, keys: Sequence[str]) -> list[Mapping[str, Any]]:
    """Return the members of each key. A router's fields that name the table may be among them.

    Raise KeyRefused for other members, and for a key with a router's field of another table.
    """
    given: list[Mapping[str, Any]] = _parsed(f"[{','.join(keys)}]")
    names = {field.name for field in format_.view.key}
    added = format_.added_to_keys
    for key, members in zip(keys, given, strict=True):
        if members.keys() == names:
            continue
        if members.keys() - added.keys() != names:
            raise KeyRefused(f"the key {shorten(key)} has not the columns {', '.join(sorted(names))}")
        for name in members.keys() - names:
            if members[name] != added[name]:
                own = f"{name} of this one is {shorten(added[name])}"
                raise KeyRefused(f"the key {shorten(key)} is that of another table: {own}")
    return given


def _canonical(field: ViewField, keys: Sequence[str], raw: BytesArray) -> Array:
    try:
        return field.type.from_text(raw)
    except (pa.ArrowInvalid, ValueError) as error:
        for key, text in zip(keys, raw, strict=True):
            try:
                field.type.from_text(pa.array([text.as_py()], pa.binary()))
            except (pa.ArrowInvalid, ValueError) as problem:
                raise KeyRefused(_other_form(key, field.name, problem)) from None
        raise KeyRefused(f"the values of {field.name} are not of its type: {shorten(error)}") from None


def _other_form(key: str, name: str, why: object) -> str:
    return f"the key {shorten(key)} is not as the record's key has it: {name}: {shorten(why)}"


def _is_same(written: Any, given: Any) -> bool:
    """Return True if two JSON values are the same. Numbers are compared by their value."""
    if type(written) is type(given):
        return bool(written == given)
    numbers = [each for each in (written, given) if isinstance(each, int | Decimal) and not isinstance(each, bool)]
    return len(numbers) == 2 and Decimal(numbers[0]) == Decimal(numbers[1])


def _is_other_form(column: Column, written: Any, given: Any) -> bool:
    """Return True if `given` is another form of the value `written` that a record shows.

    Records show a large BIGINT UNSIGNED as a negative number, and its unsigned form is the other one. Java before 19
    prints some DOUBLEs with more digits than they need.
    """
    if column.type in ("double", "float"):
        numbers = all(
            isinstance(each, int | float | Decimal) and not isinstance(each, bool) for each in (written, given)
        )
        return numbers and float(Decimal(written)) == float(Decimal(given))
    if column.type != "bigint" or not column.unsigned or type(written) is not int or type(given) is not int:
        return False
    return written < 0 and given - written == 1 << 64


def absent_records(
    listed: ListedKeys, absent: Array, source: SourceConstants, partitions: Mapping[str, int], buckets: int, now_us: int
) -> dict[int, RecordBatch]:
    """Return a deletion and a tombstone for each key that `absent` marks, by bucket.

    The deletion has neither `before` nor `after`, because nothing but the key is known of the row. Other arguments are
    those of `snapshot_records`. `refusal_of_deletions` must not refuse the table.
    """
    format_ = listed.format_
    columns = [None if column is None else column.filter(absent) for column in listed.columns]
    keys = listed.records.filter(absent)
    kinds = (_DELETION, _TOMBSTONE) if format_.envelope.tombstones else (_DELETION,)
    encoders = [encoder for kind in kinds if (encoder := format_.encoders[kind]) is not None]
    if not len(keys) or not encoders:
        return {}
    home = format_.bucket_partitions(keys, partitions)
    owners = bucket_of(format_.topic, home, buckets)
    batches = [_records(format_, encoder, columns, keys, home, source, now_us) for encoder in encoders]
    # A deletion may have headers that its tombstone lacks.
    tables = [pa.Table.from_batches([batch]) for batch in batches]
    together = pa.concat_tables(tables, promote_options="default").combine_chunks().to_batches()[0]
    # Of each key the deletion, and its tombstone behind it.
    paired = np.arange(len(keys) * len(batches)).reshape(len(batches), len(keys)).T
    return {bucket: together.take(pa.array(paired[owners == bucket].ravel())) for bucket in np.unique(owners).tolist()}


def joined(reads: Mapping[int, RecordBatch], deletions: Mapping[int, RecordBatch]) -> dict[int, RecordBatch]:
    """Return the records of rows and of deletions, by bucket. No key is in both."""
    together = dict(reads)
    for bucket, records in deletions.items():
        batches = [reads[bucket], records] if bucket in reads else [records]
        tables = [pa.Table.from_batches([each]) for each in batches]
        # Large rows have a column that deletions lack.
        whole = pa.concat_tables(tables, promote_options="default")
        together[bucket] = whole.combine_chunks().to_batches()[0]
    return together


def _records(
    format_: TableFormat,
    encoder: RecordEncoder,
    columns: list[Any],
    keys: BytesArray,
    home: Any,
    source: SourceConstants,
    now_us: int,
) -> RecordBatch:
    """Return the records of one kind about rows that the table does not have. `home`: of each key its partition."""
    n, none = len(keys), pa.nulls(len(keys), pa.binary())
    nothing, event = np.full(n, -1), np.zeros(n, np.int64)
    what = Changes(nothing, nothing, event, event, np.full(n, _DELETE, np.uint8), _of_snapshot(source), None, now_us)
    # No image is shown, so there is none: a column of no rows stands for each.
    shape, needed = format_.view.shape, format_.view.needed
    images = [
        pa.array([], describe(column, shape.id).arrow) if index in needed else None
        for index, column in enumerate(shape.columns)
    ]
    values = pa.repeat(pa.scalar(encoder.null_value, pa.binary()), n)
    if encoder.value is not None:
        values = encoder.value.changes(images, what)
    identity = format_.identities(columns, keys)
    added = encoder.spec.headers
    headers = header_maps(added, change_values(added, what, format_.view.shape.id, format_.envelope), n)
    arrays = [pa.array(home, pa.int32()), keys, values, none, none, none if identity is None else identity, none]
    return batch_of(arrays, headers)
