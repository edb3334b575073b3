"""The comparison of Debezium's records with ours, field by field.

`settled` first replaces the values that depend on the server and the clock. Times become the name of their type. GTIDs
and positions become their rank among all of the configuration, so that their order is still compared.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Any

from tests.golden.written_json import Number, dump

Record = dict[str, Any]
Topics = Mapping[str, Sequence[Record]]


@dataclass(frozen=True, slots=True)
class Difference:
    """A difference between a record of Debezium and ours."""

    configuration: str  #: name of the configuration under test
    topic: str
    operation: str  #: c, u, d, r, t or `tombstone`; "" for a record that is no change or does not say
    number: int  #: number of the pair of records in the topic, from 0
    #: Part of the record: `value.after.name`, `key`, `header.__debezium.newkey`, `value.schema...`; `record` if one
    #: side has no such record.
    place: str
    theirs: Any  #: Debezium's value
    ours: Any

    def __str__(self) -> str:
        where = f"{self.topic}[{self.number}] {self.operation} {self.place}"
        return f"{where}: Debezium {dump(self.theirs)[:400]}, ours {dump(self.ours)[:400]}"


#: The value of a field or header that a record does not have. Null is another value.
ABSENT = "(absent)"


def operation_of(record: Record) -> str:
    """Return the operation of a record: r for a row of a snapshot, whatever operation the row shows."""
    value = record["value"]
    if value is None:
        return "tombstone"
    payload = _payload(value)
    if not isinstance(payload, dict):
        return ""
    return "r" if _is_read(payload) else str(payload.get("op") or payload.get("__op") or "")


def compare(configuration: str, theirs: Topics, ours: Topics) -> list[Difference]:
    differences: list[Difference] = []
    for topic in sorted({*theirs, *ours}):
        left, right = theirs.get(topic, ()), ours.get(topic, ())
        seen: set[tuple[str, str]] = set()
        for number, (one, other) in enumerate(_pairs(left, right)):
            known = one or other or {}
            if one is None or other is None:
                places = [("record", _brief(one), _brief(other))]
            else:
                places = list(_record(one, other, seen))
            differences += [Difference(configuration, topic, operation_of(known), number, *place) for place in places]
    return differences


def _brief(record: Record | None) -> str:
    return ABSENT if record is None else dump({part: _payload(record[part]) for part in ("key", "value")})[:1000]


def _pairs(left: Sequence[Record], right: Sequence[Record]) -> Iterator[tuple[Record | None, Record | None]]:
    """Yield pairs of records with the same operation, in order. In schema changes the table and the first words must
    be the same too. In notifications the types must be the same.

    None stands for a record that only the other list has.
    """
    a, b = [_label(record) for record in left], [_label(record) for record in right]
    for tag, i, j, k, m in SequenceMatcher(None, a, b, autojunk=False).get_opcodes():
        if tag == "equal":
            yield from zip(left[i:j], right[k:m], strict=True)
            continue
        yield from ((record, None) for record in left[i:j])
        yield from ((None, record) for record in right[k:m])


def _label(record: Record) -> tuple[Any, ...]:
    value = _payload(record["value"])
    if isinstance(value, dict) and "ddl" in value:
        at_start = value["source"]["snapshot"] not in (None, "false")
        # Debezium leaves out the first word of CREATE UNIQUE INDEX.
        words = value["ddl"].removeprefix("CREATE UNIQUE ").removeprefix("UNIQUE ").split()
        return at_start, tuple(words[:3]), value["source"]["table"]
    if _is_notification(value):
        about = value["additional_data"].get("scanned_collection", "")
        return value["aggregate_type"], value["type"], about
    return (operation_of(record),)


def _record(one: Record, other: Record, seen: set[tuple[str, str]]) -> Iterator[tuple[str, Any, Any]]:
    yield from _values("partition", one.get("partition", 0), other.get("partition", 0))
    for part in ("key", "value"):
        left, right = one[part], other[part]
        if _has_schema(left) and _has_schema(right):
            # Two schemas differ in the same way in every record, so one report is enough.
            pair = (dump(left["schema"]), dump(right["schema"]))
            if pair not in seen:
                seen.add(pair)
                yield from _values(f"{part}.schema", left["schema"], right["schema"])
            yield from _values(part, left["payload"], right["payload"])
        else:
            yield from _values(part, left, right)
    left, right = one.get("headers", {}), other.get("headers", {})
    for name in {**left, **right}:
        yield from _values(f"header.{name}", left.get(name, ABSENT), right.get(name, ABSENT))
    if list(left) != list(right) and set(left) == set(right):
        yield "headers", list(left), list(right)


def _has_schema(part: Any) -> bool:
    return isinstance(part, dict) and list(part) == ["schema", "payload"]


def _values(place: str, left: Any, right: Any) -> Iterator[tuple[str, Any, Any]]:
    if isinstance(left, dict) and isinstance(right, dict):
        for name in {**left, **right}:
            yield from _values(f"{place}.{name}", left.get(name, ABSENT), right.get(name, ABSENT))
        if list(left) != list(right) and set(left) == set(right):
            yield f"{place} (order)", list(left), list(right)
    elif (fields := _fields(left)) and (others := _fields(right)):
        # Fields of a schema are compared by name, so that a missing field does not shift the rest.
        yield from _values(place, fields, others)
    elif isinstance(left, list) and isinstance(right, list) and len(left) == len(right):
        for number, (a, b) in enumerate(zip(left, right, strict=True)):
            yield from _values(f"{place}[{number}]", a, b)
    elif type(left) is not type(right) or left != right:
        yield place, left, right


def _fields(fields: Any) -> dict[str, Any]:
    """Return the fields of a Connect or Avro schema, or the tables of a transaction, by name; {} for another list."""
    if not isinstance(fields, list):
        return {}
    for name in ("field", "name", "data_collection"):
        if fields and all(isinstance(each, dict) and name in each for each in fields):
            return {each[name]: each for each in fields}
    return {}


# -- values that differ from run to run --------------------------------------------------------------------------------


def settled(topics: Topics, *, transactions: str = "") -> dict[str, list[Record]]:
    """Return the records without the values that differ from run to run.

    `transactions` is the topic of transaction metadata. Its transactions without captured rows are left out: other
    users of the server cause such transactions, so their number means nothing.
    """
    kept = {
        topic: [record for record in records if topic != transactions or _touches(record, records)]
        for topic, records in topics.items()
    }
    rows = [record for record in _all(kept) if operation_of(record) in ("c", "u", "d")]
    ranks = _Ranks(
        sorted({int(gtid[_UUID:]) for record in rows for gtid in _gtids(record)}),
        sorted({place for record in rows if (place := _place(record)) is not None}),
    )
    return {topic: [_settled(record, ranks) for record in records] for topic, records in kept.items()}


#: Characters of a server's UUID and the colon after it, in a GTID.
_UUID = 37


@dataclass(frozen=True, slots=True)
class _Ranks:
    """The ranks of transactions and places of row changes.

    Other records lie somewhere between the row changes. They have no rank of their own, so that a record that only one
    side has does not move the ranks of others.
    """

    transactions: list[int]  #: transaction numbers, ascending
    places: list[tuple[str, int]]  #: (binlog file, byte), ascending

    def transaction(self, gtid: Any) -> Any:
        return _rank("transaction", self.transactions, int(gtid[_UUID:])) if isinstance(gtid, str) else gtid

    def place(self, place: tuple[str, int]) -> str:
        return _rank("place", self.places, place)


def _rank(what: str, known: list[Any], value: Any) -> str:
    at = bisect_left(known, value)
    return f"{what} {at}" if at < len(known) and known[at] == value else f"before {what} {at}"


def _all(topics: Topics) -> Iterator[Record]:
    for records in topics.values():
        yield from records


def _payload(part: Any) -> Any:
    return part["payload"] if _has_schema(part) else part


def _touches(record: Record, records: Sequence[Record]) -> bool:
    """Whether the transaction of this BEGIN or END has events."""
    id_ = _payload(record["value"])["id"]
    ends = [value for each in records if (value := _payload(each["value"]))["status"] == "END" and value["id"] == id_]
    return any(end["event_count"] for end in ends)


def _is_read(value: Any) -> bool:
    operation, source = value.get("op") or value.get("__op"), value.get("source")
    snapshot = source.get("snapshot") if isinstance(source, dict) else value.get("__source_snapshot")
    return operation == "r" or (operation == "c" and snapshot == "incremental")


def _is_notification(value: Any) -> bool:
    return isinstance(value, dict) and "additional_data" in value


def _gtids(record: Record) -> Iterator[str]:
    value = _payload(record["value"])
    if not isinstance(value, dict) or _is_read(value):
        return
    if isinstance(value.get("source"), dict) and isinstance(value["source"]["gtid"], str):
        yield value["source"]["gtid"]
    if "status" in value:
        yield value["id"]


def _place(record: Record) -> tuple[str, int] | None:
    value = _payload(record["value"])
    if not isinstance(value, dict) or "source" not in value or _is_read(value):
        return None
    return value["source"]["file"], value["source"]["pos"]


_TIMES = ("ts_ms", "ts_us", "ts_ns")
_SERVERS = ("version", "file", "server_id", "thread")


#: Ends of the names of fields and headers that a transform adds, if their values differ from run to run.
_ADDED = (*("ts_ms", "ts_us", "ts_ns"), "gtid", "transaction_id", "pos", "server_id", "file", "thread", "version")


def _added(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields with the type's name in place of each value of `_ADDED`."""
    own = ("__", "meta_", "h-")
    return {
        name: _kind(value) if name.startswith(own) and name.endswith(_ADDED) else value
        for name, value in values.items()
    }


def _settled(record: Record, ranks: _Ranks) -> Record:
    value = _payload(record["value"])
    if "headers" in record:
        record = {**record, "headers": _added(record["headers"])}
    if _is_notification(value):
        value = {**value, "timestamp": _kind(value["timestamp"])}
        record = {**record, "value": _with_payload(record["value"], value)}
    elif isinstance(value, dict) and "source" not in value:
        value = _added(value)
        record = {**record, "value": _with_payload(record["value"], value)}
    if not isinstance(value, dict):
        return record
    new: dict[str, Any] = {name: _kind(each) if name in _TIMES else each for name, each in value.items()}
    out = dict(record)
    if "status" in new:
        new["id"] = ranks.transaction(new["id"])
        out["key"] = _with_payload(record["key"], {"id": ranks.transaction(_payload(record["key"])["id"])})
    if isinstance(new.get("transaction"), dict):
        new["transaction"] = {**new["transaction"], "id": ranks.transaction(new["transaction"]["id"])}
    if isinstance(new.get("source"), dict):
        new["source"] = _settled_source(new["source"], _place(record), ranks)
    out["value"] = _with_payload(record["value"], new)
    return out


def _settled_source(source: dict[str, Any], place: tuple[str, int] | None, ranks: _Ranks) -> dict[str, Any]:
    agree = source["ts_us"] is not None and source["ts_us"] // 1000 == source["ts_ms"]
    new: dict[str, Any] = {name: _kind(each) if name in _TIMES + _SERVERS else each for name, each in source.items()}
    new["ts_us"] = f"{new['ts_us']}, {'the same' if agree else 'another'} time as ts_ms"
    if place is None:
        new["pos"], new["gtid"] = _kind(source["pos"]), _kind(source["gtid"])
    else:
        new["pos"], new["gtid"] = ranks.place(place), ranks.transaction(source["gtid"])
    return new


def _with_payload(part: Any, payload: Any) -> Any:
    return {**part, "payload": payload} if _has_schema(part) else payload


def _kind(value: Any) -> str:
    return "null" if value is None else "number" if isinstance(value, int | Number) else type(value).__name__
