"""What the records of a topic say about the place that a connector has reached."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from incsnap.envelope.seam import ROW_STEP, RecordPlace, Seam
from incsnap.errors import ConfigError
from incsnap.gtid import GtidSet
from incsnap.kafka.client_settings import ClientSettings
from incsnap.tables import Column, TableId, TableShape
from incsnap.takeover import control_topics, offset_place
from incsnap.takeover.connector_offset import ConnectorOffset
from incsnap.takeover.control_topics import sent_statements, sent_transactions, with_control_topics
from incsnap.takeover.joined_topics import joined_topics
from incsnap.takeover.partition_parts import PartitionRange
from incsnap.takeover.partition_reading import OffsetEvent, PartitionReading
from incsnap.takeover.record_places import PlaceForm, record_places
from incsnap.takeover.written_records import again, with_earlier
from incsnap.verify.record_reading import RecordForm
from incsnap.verify.topic_side import PartitionPart
from tests.support.job_settings import loaded_with

_LEAST = RecordPlace(12, 90)
_FORM = PlaceForm(RecordForm(envelope=True, key_schemas=False, schemas=False))


class Message:
    """A message of Kafka."""

    def __init__(
        self, offset: int, op: str, pos: int, row: int = 0, *, has_key: bool = True, gtid: str | None = None
    ) -> None:
        self._offset, self._op, self._has_key = offset, op, has_key
        self._source: dict[str, object] = {"version": "3.6.1.Final", "connector": "mysql", "name": ""}
        self._source |= {"snapshot": "false", "gtid": gtid, "file": "binlog.000012", "pos": pos, "row": row}

    def key(self) -> bytes | None:
        return b'{"id":1}' if self._has_key and self._op != "t" else None

    def value(self) -> bytes:
        after = {"id": 1} if self._op in ("c", "u") else None
        value = {"before": None, "after": after, "source": self._source, "op": self._op, "ts_ms": 1}
        return json.dumps(value, separators=(",", ":")).encode()

    def offset(self) -> int:
        return self._offset

    def headers(self) -> None:
        return None


def reading_of(
    *messages: Message, delivered: str = "", is_exact: bool = True, least: RecordPlace = _LEAST
) -> PartitionReading:
    """Return the reading of a partition with these messages, which are read at once.

    `delivered`: transactions before the offset. `is_exact`: as in PartitionReading. `least`: place of the offset.
    """
    reading = PartitionReading(PartitionPart("shop.d.t", 0, 0, len(messages)), least, is_exact=is_exact)
    reading.add(with_earlier(record_places(messages, _FORM), GtidSet.parse(delivered), _LEAST))
    return reading


def test_the_record_of_a_truncation_has_a_place_and_does_not_move_the_end() -> None:
    reading = reading_of(Message(0, "c", 100), Message(1, "c", 100, 1), Message(2, "t", 400))

    assert reading.truncations == {("binlog.000012", 400)}
    assert (reading.end, reading.last) == (
        RecordPlace(12, 100, 1, ROW_STEP).next,
        (RecordPlace(12, 100, 1, ROW_STEP), 1),
    )
    assert (reading.unplaced, reading.keyless) == (0, set())
    assert reading_of(Message(0, "t", 400)).end is None


def test_a_record_without_a_key_does_not_hide_the_end_of_those_with_keys() -> None:
    reading = reading_of(Message(0, "c", 100), Message(1, "c", 200, has_key=False), Message(2, "d", 300))
    assert reading.end == RecordPlace(12, 300).next
    assert reading.keyless == {(12, 200, 0)}

    reading = reading_of(Message(0, "c", 100), Message(1, "c", 200, has_key=False))
    assert reading.end == RecordPlace(12, 100, 0, ROW_STEP).next


def test_records_whose_row_is_unknown_come_twice_if_they_have_no_key_or_are_of_the_last_event() -> None:
    keyless = [Message(number, "c", pos, has_key=False) for number, pos in enumerate((50, 90, 100, 300))]
    assert reading_of(*keyless, is_exact=False).unplaced == 3
    assert reading_of(*keyless).unplaced == 0

    keyed = [Message(4, "c", 100), Message(5, "c", 200), Message(6, "c", 200), Message(7, "c", 300, has_key=False)]
    reading = reading_of(*keyless, *keyed, is_exact=False)
    assert (reading.unplaced, reading.end) == (6, RecordPlace(12, 200))

    more = record_places([Message(8, "c", 200)], _FORM)
    reading.add(more)
    assert reading.unplaced == 7
    assert reading_of(Message(0, "c", 50), is_exact=False).unplaced == 0


@pytest.mark.parametrize(
    ("row", "partitions", "count"),
    [
        (2, ["cc"], 0),
        (2, ["c", "c"], 0),
        (2, ["CC"], 0),
        (2, ["ccc"], 1),
        (1, ["CC"], 1),
        (2, ["cc", "cc"], 2),
        (2, ["dcdc"], 0),
        (1, ["dcdc"], 2),
        (2, ["dd"], 0),
        (0, ["cc"], 2),
    ],
    ids=["a clean stop", "two partitions", "without a key", "a row behind", "a row behind without a key",
         "rows behind in two partitions", "keys that change", "a key that changes behind", "deletions", "no row"],
)  # fmt: skip
def test_the_rows_before_an_offset_in_their_event_do_not_come_again(
    row: int, partitions: list[str], count: int
) -> None:
    # Each letter is a record of the event at 12:100; a capital one has no key.
    readings = [
        reading_of(
            *(Message(at, op.lower(), 100, has_key=op.islower()) for at, op in enumerate(ops)),
            is_exact=False,
            least=RecordPlace(12, 100, row),
        )
        for ops in partitions
    ]
    unplaced = {"shop.d.t": sum(each.unplaced for each in readings)}
    of_offset = {"shop.d.t": sum((each.of_offset for each in readings), OffsetEvent())}

    assert again(unplaced, of_offset, row, ()) == ({"shop.d.t": count} if count else {})
    # A row without a record is before the offset or behind it.
    assert again(unplaced, of_offset, row, {"shop.d.t"}) == unplaced


def test_records_of_other_events_come_again_whatever_the_offset_has_of_its_own() -> None:
    messages = [Message(0, "c", 100), Message(1, "c", 100), Message(2, "c", 300), Message(3, "c", 300, has_key=False)]
    reading = reading_of(*messages, is_exact=False, least=RecordPlace(12, 100, 2))

    assert again({"t": reading.unplaced}, {"t": reading.of_offset}, 2, ()) == {"t": 2}


def test_a_record_of_a_transaction_before_the_offset_has_a_place_before_all_others() -> None:
    server = "3e11fa47-71ca-11e1-9e33-c80aa9429562"
    before, behind, tagged = (f"{server}:{number}" for number in ("7", "8", "blue:8"))
    messages = [Message(0, "c", 90_000, gtid=before), Message(1, "c", 90_000, gtid=tagged), Message(2, "t", 90_000)]

    # The place is that of an earlier server, so it is no cut repetition either.
    reading = reading_of(*messages, Message(3, "c", 100, gtid=behind), delivered=f"{server}:1-7:blue:1-9")
    assert reading.end == RecordPlace(12, 100, 0, ROW_STEP).next
    assert reading.greatest == RecordPlace(12, 100, 0, ROW_STEP)

    # The connector has repeated records up to its offset. So all that follows comes again.
    repeated = reading_of(
        Message(0, "c", 100, gtid=behind), Message(1, "c", 90, gtid=before), delivered=f"{server}:1-7"
    )
    assert repeated.end is not None
    assert repeated.end < RecordPlace(0, 0)
    assert repeated.greatest == RecordPlace(12, 100, 0, ROW_STEP)


def test_a_record_of_another_form_is_refused() -> None:
    reading = PartitionReading(PartitionPart("shop.d.t", 0, 0, 1), _LEAST)
    message = Message(7, "c", 100)
    message.value = lambda: b'{"id":1}'  # type: ignore[method-assign]

    with pytest.raises(ConfigError, match="offset 7 of partition 0"):
        reading.add(record_places([message], _FORM))


def test_records_of_another_form_are_left_out_of_a_topic_that_also_has_schema_changes() -> None:
    settings = loaded_with(
        transforms="r",
        transforms__r__type="org.apache.kafka.connect.transforms.RegexRouter",
        transforms__r__regex=".*",
        transforms__r__replacement="all",
        include__schema__changes="true",
    ).settings
    table = TableId("shop", "t")
    topics = joined_topics(settings, {table: TableShape(table, (Column("id", "int", nullable=False),), (0,))}, ())
    assert topics.forms["all"].has_others
    change = Message(0, "c", 100)
    change.value = lambda: b'{"source":{},"databaseName":"shop","ddl":"CREATE TABLE t (id INT)"}'  # type: ignore[method-assign]
    reading = PartitionReading(PartitionPart("all", 0, 0, 2), _LEAST, since=None)

    reading.add(record_places([change, Message(1, "c", 100)], replace(topics.forms["all"], name="")))

    assert reading.end == RecordPlace(12, 100, 0, ROW_STEP).next


def test_values_of_other_topics_are_left_out_of_a_control_topic(monkeypatch: pytest.MonkeyPatch) -> None:
    gtid = "3e11fa47-71ca-11e1-9e33-c80aa9429562:6"
    begin, row = {"status": "BEGIN", "id": gtid, "event_count": None}, {"id": 1, "source": "shop"}
    values = [row, {"before": None, "after": row, "source": {"gtid": gtid}}, {"status": "paid"}, begin]
    monkeypatch.setattr(control_topics, "_values", lambda *_, **__: iter(values))
    monkeypatch.setattr(control_topics, "partition_counts", lambda *_: {})
    monkeypatch.setattr(control_topics, "admin_client", lambda _: None)
    monkeypatch.setattr(control_topics, "ranges_since", lambda *_: [PartitionRange(PartitionPart("all", 0, 0, 4), 0)])
    of_topic = partial(control_topics.values_since, ClientSettings("k:1", {}), "all", 0, None)

    assert sent_transactions(of_topic("status", lambda _: False)) == (GtidSet.parse(gtid), GtidSet())
    assert list(of_topic("ddl", lambda _: False)) == []


def statement(file: str, pos: int, snapshot: object = "false") -> dict[str, Any]:
    """Return the value of a record of a topic of schema changes."""
    return {"source": {"file": file, "pos": pos, "snapshot": snapshot}}


def test_statements_of_an_earlier_server_do_not_count() -> None:
    upto = ("binlog.000003", 900)
    values = [
        statement("mysql-bin.000500", 4),
        statement("binlog.000500", 4),
        statement("binlog.000003", 901),
        statement("binlog.000003", 700, snapshot=True),
        statement("binlog.000002", 500),
        statement("binlog.000003", 300),
    ]

    assert sent_statements(values, upto) == RecordPlace(3, 300, 0, ROW_STEP + 1)
    assert sent_statements(values[:4], upto) is None


def test_statements_before_the_offset_do_not_count_if_an_earlier_server_has_a_later_place_for_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    server = "3e11fa47-71ca-11e1-9e33-c80aa9429562"
    earlier = statement("binlog.000012", 800)
    earlier["source"]["gtid"] = f"{server}:7"
    later = statement("binlog.000012", 100)
    later["source"]["gtid"] = f"{server}:8"
    monkeypatch.setattr(control_topics, "values_since", lambda *_: [earlier, later])
    settings = loaded_with(include__schema__changes="true").settings
    seam, delivered = Seam("uuid", _LEAST), GtidSet.parse(f"{server}:1-7")

    seam, warnings = with_control_topics(
        settings, ClientSettings("k:1", {}), seam, 0, delivered, ("binlog.000012", 900)
    )

    assert (seam.has_statement("binlog.000012", 100), seam.has_statement("binlog.000012", 200)) == (True, False)
    assert not warnings


def test_transactions_without_a_gtid_do_not_count() -> None:
    gtids = [f"3e11fa47-71ca-11e1-9e33-c80aa9429562:{number}" for number in (6, 7)]
    values = [
        {"status": "BEGIN", "id": "file=mysql-bin.000003,pos=154"},
        {"status": "END", "id": "file=mysql-bin.000003,pos=154"},
        {"status": "BEGIN", "id": gtids[0]},
        {"status": "END", "id": gtids[0]},
        {"status": "BEGIN", "id": gtids[1]},
    ]

    begun, ended = sent_transactions(values)

    assert begun == GtidSet.parse(",".join(gtids))
    assert ended == GtidSet.parse(gtids[0])


@pytest.mark.parametrize(("gtids", "is_refused"), [("7", True), ("1-7", False), ("6", False)])
def test_an_offset_within_the_first_transaction_with_a_gtid_is_refused(
    gtids: str, is_refused: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Debezium counts the first such transaction as done as soon as it has begun."""
    server = "3e11fa47-71ca-11e1-9e33-c80aa9429562"
    events = [
        ("binlog.000012", 126, "Previous_gtids", 1, 157, ""),
        ("binlog.000012", 157, "Gtid", 1, 236, f"SET @@SESSION.GTID_NEXT= '{server}:7'"),
        ("binlog.000012", 236, "Query", 1, 310, "BEGIN"),
        ("binlog.000012", 310, "Table_map", 1, 360, "table_id: 90 (shop.t)"),
        ("binlog.000012", 360, "Write_rows", 1, 9_000, "table_id: 90 flags: STMT_END_F"),
    ]
    pages = {"SHOW BINARY LOGS": [("binlog.000012", 9_000)], "SHOW BINLOG EVENTS IN %s FROM %s LIMIT %s": events[2:]}
    monkeypatch.setattr(offset_place, "query", lambda _, sql, *__: pages[sql])
    monkeypatch.setattr(offset_place, "events_of", lambda *_: iter(events))
    offset = ConnectorOffset(GtidSet.parse(f"{server}:{gtids}"), "binlog.000012", 236, event=2, row=10)
    connection: Any = None
    if not is_refused:
        assert offset_place.place_of(connection, offset) == RecordPlace(12, 360, 10)
        return

    with pytest.raises(ConfigError, match=f"counts the transaction {server}:7 as done"):
        offset_place.place_of(connection, offset)
