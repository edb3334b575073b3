"""The places of a connector's records: which part of a record shows them, and what counts as a deletion."""

from __future__ import annotations

import json
from typing import Any

import pytest

from incsnap.config.settings import Settings
from incsnap.errors import ConfigError
from incsnap.tables import Column, TableId, TableShape
from incsnap.takeover.record_places import PlaceForm, record_places
from incsnap.tasks.formats import format_of
from incsnap.verify.record_reading import DELETION, ROW, TOMBSTONE, UNREADABLE, for_table
from tests.support.job_settings import loaded_with

_SHAPE = TableShape(
    TableId("shop", "orders"), (Column("id", "int"), Column("text", "varchar", charset="utf8mb4", length=99)), (0,)
)
_UNWRAP = {"transforms": "unwrap", "transforms__unwrap__type": "io.debezium.transforms.ExtractNewRecordState"}
_SOURCE = "source.file,source.pos,source.row"


class Message:
    """A message of Kafka."""

    def __init__(self, offset: int, value: bytes | None, **headers: str) -> None:
        self._offset, self._value = offset, value
        self._headers = [(name, text.encode()) for name, text in headers.items()]

    def key(self) -> bytes:
        return b'{"id":1}'

    def value(self) -> bytes | None:
        return self._value

    def offset(self) -> int:
        return self._offset

    def headers(self) -> list[tuple[str, bytes]]:
        return self._headers


def settings_of(**changes: str) -> Settings:
    """Return the settings of a connector that unwraps."""
    options = {f"transforms__unwrap__{name}": value for name, value in changes.items()}
    return loaded_with(**_UNWRAP, **options).settings


def form_of(settings: Settings) -> PlaceForm:
    """Return the form of the records of the table."""
    return PlaceForm.of(format_of(for_table(settings), _SHAPE), settings.formats)


def read(form: PlaceForm, *messages: Message) -> list[tuple[Any, ...]]:
    """Return (state, is_snapshot, file, pos, row) of each record."""
    columns = record_places(messages, form).to_pydict()
    names = ("state", "is_snapshot", "file", "pos", "row_number")
    return list(zip(*(columns[name] for name in names), strict=True))


def row(**added: object) -> bytes:
    """Return an unwrapped row, whose text looks like the added fields."""
    text = '"__source_pos":9,"__source_file":"x.9"'
    return json.dumps({"id": 1, "text": text, **added}, separators=(",", ":")).encode()


def test_added_fields_show_the_places_of_rows() -> None:
    form = form_of(settings_of(add__fields=f"op,{_SOURCE}", delete__tombstone__handling__mode="rewrite-with-tombstone"))
    place = {"__source_file": "binlog.000012", "__source_pos": 345, "__source_row": 2}

    assert form.is_exact
    assert read(
        form,
        Message(0, row(__deleted="false", __op="u", **place)),
        Message(1, row(__deleted="true", __op="d", **place)),
        Message(2, row(__deleted="false", __op="r", **place)),
        Message(3, None),
        Message(4, b"[]"),
    ) == [
        (ROW, False, "binlog.000012", 345, 2),
        (DELETION, False, "binlog.000012", 345, 2),
        (ROW, True, "binlog.000012", 345, 2),
        (TOMBSTONE, False, None, None, 0),
        (UNREADABLE, False, None, None, 0),
    ]


def test_headers_show_the_places_of_deletions_that_have_lost_their_rows() -> None:
    form = form_of(settings_of(add__headers=f"op,{_SOURCE}"))
    place = {"__source_file": "binlog.000012", "__source_pos": "345", "__source_row": "2"}

    assert form.is_exact
    assert read(form, Message(0, row(), __op="c", **place), Message(1, b"null", __op="d", **place)) == [
        (ROW, False, "binlog.000012", 345, 2),
        (DELETION, False, "binlog.000012", 345, 2),
    ]


@pytest.mark.parametrize(
    ("mode", "state"),
    [("delete-to-tombstone", DELETION), ("rewrite-with-tombstone", TOMBSTONE)],
    ids=["a deletion", "the tombstone behind one"],
)
def test_a_record_without_a_value_is_what_the_transform_makes_of_a_deletion(mode: str, state: int) -> None:
    form = form_of(settings_of(add__headers=f"op,{_SOURCE}", delete__tombstone__handling__mode=mode))
    place = {"__source_file": "binlog.000012", "__source_pos": "345", "__source_row": "2"}
    given = place if state == DELETION else {}

    assert read(form, Message(0, None, __op="d", **given))[0][:3] == (state, False, given.get("__source_file"))


def test_places_without_the_row_tell_the_event_alone() -> None:
    form = form_of(settings_of(add__fields="op,source.file,source.pos"))

    assert not form.is_exact
    assert read(form, Message(0, row(__op="u", __source_file="binlog.000012", __source_pos=345))) == [
        (ROW, False, "binlog.000012", 345, 0)
    ]


@pytest.mark.parametrize(
    ("changes", "drops"),
    [
        ({}, False),
        ({"transforms__unwrap__delete__tombstone__handling__mode": "drop"}, False),
        ({"skip__messages__without__change": "true"}, True),
        (
            {
                "transforms": "some,unwrap",
                "transforms__some__type": "io.debezium.transforms.Filter",
                "transforms__some__language": "jsr223.groovy",
                "transforms__some__topic__regex": r".*\.shop\..*",
                "transforms__some__condition": "value.op != 'u'",
            },
            True,
        ),
        (
            {
                "transforms": "some,unwrap",
                "transforms__some__type": "io.debezium.transforms.Filter",
                "transforms__some__language": "jsr223.groovy",
                "transforms__some__topic__regex": r".*\.shop\..*",
                "transforms__some__condition": "value.after == null || value.after.id > 5",
            },
            True,
        ),
    ],
    ids=["all rows", "no deletions", "no unchanged rows", "no updates", "a condition"],
)
def test_rows_that_may_have_no_record_are_known(changes: dict[str, str], drops: bool) -> None:
    options = {**_UNWRAP, "transforms__unwrap__add__headers": "op,source.file,source.pos", **changes}

    assert form_of(loaded_with(**options).settings).drops_rows == drops


@pytest.mark.parametrize(
    "settings",
    [
        settings_of(add__fields="op,source.gtid"),
        loaded_with(transforms="o", transforms__o__type="io.debezium.transforms.outbox.EventRouter").settings,
    ],
    ids=["no position", "outbox"],
)
def test_records_without_places_are_refused_with_the_reason(settings: Settings) -> None:
    shape = TableShape(
        TableId("shop", "outbox"),
        tuple(
            Column(name, "varchar", charset="utf8mb4", length=99)
            for name in ("id", "aggregatetype", "aggregateid", "type", "payload")
        ),
        (0,),
    )
    with pytest.raises(ConfigError, match="places"):
        PlaceForm.of(format_of(for_table(settings), shape), settings.formats)


_INSERTED = "io.debezium.connector.mysql.transforms.ReadToInsertEvent"


@pytest.mark.parametrize(
    ("added", "tells"),
    [(f"op,{_SOURCE}", False), (f"op,source.snapshot,{_SOURCE}", True)],
    ids=["the operation alone", "the snapshot"],
)
def test_behind_a_read_to_insert_only_the_snapshot_tells_rows_that_were_read(added: str, tells: bool) -> None:
    settings = loaded_with(
        **{**_UNWRAP, "transforms": "inserted,unwrap"},
        transforms__inserted__type=_INSERTED,
        transforms__unwrap__add__headers=added,
    ).settings
    form = form_of(settings)
    place = {"__source_file": "binlog.000012", "__source_pos": "345", "__source_row": "2"}
    shown = {"__source_snapshot": "incremental"} if tells else {}

    assert (form.is_exact, form.tells_reads) == (tells, tells)
    assert read(form, Message(0, row(), __op="c", **place, **shown), Message(1, row(), __op="c", **place)) == [
        (ROW, tells, "binlog.000012", 345, 2),
        (ROW, False, "binlog.000012", 345, 2),
    ]


def test_the_source_of_an_envelope_behind_a_read_to_insert_tells_rows_that_were_read() -> None:
    settings = loaded_with(topic__prefix="shop", transforms="i", transforms__i__type=_INSERTED).settings
    form = form_of(settings)
    values = [
        envelope("shop", "c", "incremental", text=',"snapshot":"false"'),
        envelope("shop", "c", "first"),
        envelope("shop", "r", "last"),
        envelope("shop", "c", "false", text=envelope("shop", "c", "first").decode()),
        envelope("shop", "c", None),
        envelope("shop", "d"),
        None,
    ]

    assert form.is_exact
    reads = [each[1] for each in read(form, *(Message(number, value) for number, value in enumerate(values)))]
    assert reads == [True, True, True, False, False, False, False]
    # Without the transform an insertion is a change, whatever its source says.
    assert not read(form_of(loaded_with(topic__prefix="shop").settings), Message(0, values[0]))[0][1]


def envelope(name: str, op: str, snapshot: str | None = "false", **columns: object) -> bytes:
    """Return an envelope of a connector with this `topic.prefix`. `snapshot`: that of its source."""
    row = {"id": 1, **columns}
    source = {"version": "3.6.1.Final", "connector": "mysql", "name": name, "ts_ms": 1, "snapshot": snapshot}
    source |= {"db": "shop", "table": "orders", "file": "binlog.000012", "pos": 345, "row": 2, "query": None}
    value = {"before": None, "after": None if op in "dt" else row, "source": source, "op": op, "ts_ms": 1}
    return json.dumps(value, separators=(",", ":")).encode()


@pytest.mark.parametrize("schemas", ["false", "true"])
def test_the_envelopes_of_another_connector_are_left_out(schemas: str) -> None:
    settings = loaded_with(topic__prefix="shop", value__converter__schemas__enable=schemas).settings
    text = envelope("other", "c")[2:-1].decode()
    values = [
        envelope("shop", "c", text=text),
        envelope("other", "c", text=envelope("shop", "c").decode()),
        envelope("other", "t"),
        None,
        b"[]",
    ]
    if schemas == "true":
        schema = b'{"type":"struct","fields":[],"name":"shop.shop.orders.Envelope"}'
        values = [value and b'{"schema":%b,"payload":%b}' % (schema, value) for value in values]

    assert read(form_of(settings), *(Message(number, value) for number, value in enumerate(values))) == [
        (ROW, False, "binlog.000012", 345, 2),
        (TOMBSTONE, False, None, None, None),
        (UNREADABLE, False, None, None, None),
    ]
