"""`incsnap verify` where several rows may have one record key: tables of one topic, and message.key.columns."""

from __future__ import annotations

import json
import re

import pytest

from lab.captured_database import CapturedDatabase
from lab.table_designs import TableDesign
from tests.e2e.test_verify import verify
from tests.support.delivery import send_first_snapshot
from tests.support.faulty_topic import send
from tests.support.kafka import Read, read_all

pytestmark = pytest.mark.servers


def design(name: str, row: str) -> TableDesign:
    """Return a table of two numbers; `row` are their values in row `i`."""
    columns = "id BIGINT PRIMARY KEY, version BIGINT NOT NULL, KEY (version)"
    return TableDesign(name, columns, ("id",), row, lambda random, number: (number,), lambda random: {})


def test_rows_of_one_record_key_prove_nothing_and_all_others_are_compared_and_repaired(play: CapturedDatabase) -> None:
    bare = [play.create(design("bare_1", "i, 1"), 20), play.create(design("bare_2", "i + 1000, 2"), 20)]
    keyed = [play.create(design(f"keyed_{number}", f"i, {number}"), 20) for number in (1, 2)]
    coded = play.create(design("coded_1", "i, i"), 20)
    settings = {
        "snapshot.mode": "initial",
        "message.key.columns": f"{coded}:version",
        "topic.creation.default.partitions": "1",
        "transforms": "bare,keyed",
        **{
            f"transforms.{name}.{setting}": value
            for name in ("bare", "keyed")
            for setting, value in {
                "type": "io.debezium.transforms.ByLogicalTableRouter",
                "topic.regex": rf"{re.escape(play.prefix)}\..*\.{name}_.",
                "topic.replacement": f"{play.prefix}.{name}",
            }.items()
        },
        # Keys do not tell the table.
        "transforms.bare.key.enforce.uniqueness": "false",
    }
    with play.job(settings) as job:
        send_first_snapshot(play, job)
        values = {each.key: each.value for each in read_all(play.kafka, f"{play.prefix}.bare")}
        strange = (values[b'{"id":3}'] or b"").replace(b'"after":{"id":3', b'"after":{"id":5555')
        send(play.kafka, f"{play.prefix}.bare", [Read(0, 0, b'{"id":5555}', strange), Read(0, 0, b'{"id":1005}', None)])
        send(play.kafka, play.topic(coded), [Read(0, 0, b'{"version":7}', None)])
        of_keyed = {each.key or b"": each.value or b"" for each in read_all(play.kafka, f"{play.prefix}.keyed")}
        seven = next(key for key in of_keyed if json.loads(key)["id"] == 7 and b"keyed_2" in key)
        first = next(key for key in of_keyed if json.loads(key)["id"] == 7 and b"keyed_1" in key)
        extra = (first.replace(b'"id":7', b'"id":99'), of_keyed[first].replace(b'"id":7', b'"id":99'))
        send(play.kafka, f"{play.prefix}.keyed", [Read(0, 0, seven, None), Read(0, 0, *extra)])
        with play.connect() as connection, connection.cursor() as cursor:
            cursor.execute(f"INSERT INTO {bare[1].sql} VALUES (3, 2)")
            cursor.execute(f"INSERT INTO {coded.sql} VALUES (1000, 5)")
            for table in (bare[0], keyed[0]):
                cursor.execute(f"UPDATE {table.sql} SET version = 9 WHERE id = 1")
        play.drain(job)
        before = len(read_all(play.kafka, f"{play.prefix}.keyed"))

        code, answers = verify(play, "--repair", "--yes", settings=settings)

    shown = {
        name: {kind: count for kind, count in answer.items() if kind not in ("table", "gtid_set", "equal") and count}
        for name, answer in answers.items()
        if "_" in name
    }
    assert shown == {
        # Two rows have the record key 5.
        "coded_1": {"unverifiable": 1, "repaired": 1},
        # Two tables have the key 3. Nothing tells whose row 5555 was, and the job would not delete it.
        "bare_1": {"extra": 1, "unverifiable": 1},
        "bare_2": {"extra": 1, "unverifiable": 1, "repaired": 1},
        "keyed_1": {"repaired": 1},
        "keyed_2": {"repaired": 1},
    }
    assert code == 1
    sent = [(each.key, each.value is None) for each in read_all(play.kafka, f"{play.prefix}.keyed")[before:]]
    assert sorted(sent) == sorted([(seven, False), (extra[0], False), (extra[0], True)])
