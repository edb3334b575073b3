"""Tests of the answers of `incsnap verify`: exit codes, JSON lines and the words for a person."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from incsnap.verify.kinds import EXTRA, MISSING, UNVERIFIABLE, WRONG
from incsnap.verify.report import Difference, TableReport, exit_code, next_command, write_differences

EQUAL = TableReport("d.equal", "p.d.equal", 3, "uuid:1-5")
WRONG_ROW = TableReport("d.t", "p.d.t", 3, "uuid:1-5", differences=[Difference(b'{"id":1}', WRONG, ("qty",))])
UNPROVED = TableReport("d.u", "p.d.u", 3, differences=[Difference(b'{"id":1}', UNVERIFIABLE, note="why")])
REFUSED = TableReport("d.r", "", refused="It has no primary key.")
REPEATED = TableReport("d.h", "p.d.h", 3, sent_twice=2)


@pytest.mark.parametrize(
    ("reports", "options", "code"),
    [
        ([EQUAL], {}, 0),
        ([EQUAL, WRONG_ROW], {}, 1),
        ([REFUSED, WRONG_ROW], {}, 1),
        ([EQUAL, REFUSED], {"allow_unverifiable": True}, 2),
        ([UNPROVED], {}, 2),
        ([UNPROVED], {"allow_unverifiable": True}, 0),
        ([REPEATED], {}, 0),
        ([REPEATED], {"strict": True}, 1),
    ],
)
def test_exit_codes(reports: list[TableReport], options: dict[str, bool], code: int) -> None:
    assert exit_code(reports, **{"strict": False, "allow_unverifiable": False, **options}) == code


def test_an_object_has_the_counts_of_all_kinds() -> None:
    assert WRONG_ROW.to_json() == {
        "table": "d.t",
        "gtid_set": "uuid:1-5",
        "equal": False,
        "missing": 0,
        "stale": 0,
        "wrong": 1,
        "extra": 0,
        "no_tombstone": 0,
        "unverifiable": 0,
        "sent_twice": 0,
        "back_in_time": 0,
    }
    assert REFUSED.to_json()["equal"] is False
    assert REPEATED.to_json()["equal"] is True


def test_the_summary_ends_with_the_next_command() -> None:
    assert EQUAL.lines() == ["d.equal: equal. 3 rows are in p.d.equal as the table has them."]
    assert WRONG_ROW.lines() == ["d.t: 1 wrong, of 3 rows.", '  wrong in qty: {"id":1}']
    assert next_command([EQUAL, WRONG_ROW], "a.properties", 1).startswith(
        "Next: incsnap verify a.properties --table d.t --repair "
    )
    assert next_command([EQUAL], "a.properties", 0) == ""
    assert "incsnap verify a.properties --table d.u" in next_command([EQUAL, UNPROVED], "a.properties", 2)


def test_the_next_command_has_the_file_of_the_worker_and_no_sample_for_a_repair() -> None:
    repair = next_command([WRONG_ROW], "a b.properties", 1, "w.properties", "1/7")
    assert repair.startswith("Next: incsnap verify 'a b.properties' --worker w.properties --table d.t --repair ")
    again = next_command([UNPROVED], "a.properties", 2, "w.properties", "1/7")
    assert again.startswith("Next: incsnap verify a.properties --worker w.properties --table d.u --sample 1/7 ")


def test_no_repair_is_proposed_for_keys_that_no_job_can_send_again() -> None:
    odd = replace(WRONG_ROW, odd={b'{"id":1}'})
    assert next_command([EQUAL, odd], "a.properties", 1) == (
        "No job can send these keys of d.t again: no row of the table can have such a key, so a job refuses it"
    )
    left = replace(WRONG_ROW, table="d.left", unrepairable="why")
    assert " --table d.t --repair " in next_command([left, WRONG_ROW], "a.properties", 1)
    extra = replace(WRONG_ROW, differences=[Difference(b'{"id":1}', EXTRA)], undeletable="why")
    assert next_command([extra], "a.properties", 1).endswith(" of d.t again: why")


def test_no_command_helps_a_table_that_is_refused() -> None:
    assert next_command([EQUAL, REFUSED], "a.properties", 2) == ""
    assert "--table d.u " in next_command([REFUSED, UNPROVED], "a.properties", 2)


def test_an_answer_after_a_repair_says_how_many_keys_are_right_now() -> None:
    repaired = replace(EQUAL, repaired=2)
    assert repaired.to_json()["repaired"] == 2
    assert repaired.lines()[1] == "  2 keys were sent again, and are as the table has them."


def test_a_line_shows_the_key_with_all_its_digits() -> None:
    key = b'{"n":12345678901234567890.1234567891,"name":"\xc3\xa4"}'
    line = Difference(key, WRONG, ("qty",)).line()
    assert line == '{"key": {"n": 12345678901234567890.1234567891, "name": "ä"}, "kind": "wrong", "columns": ["qty"]}'


@pytest.mark.parametrize(
    ("key", "shown"),
    [
        (b"Struct{id=5}", {"key_text": "Struct{id=5}"}),
        (b"abc", {"key_text": "abc"}),
        (b"", {"key_text": ""}),
        ("\ufeffä".encode(), {"key_text": "\ufeffä"}),
        (b'{"id":NaN}', {"key_text": '{"id":NaN}'}),
        ('{"id":5}'.encode("utf-16"), {"key_base64": "//57ACIAaQBkACIAOgA1AH0A"}),
        (b"\xff\x00", {"key_base64": "/wA="}),
        (b'"abc"', {"key": "abc"}),
        (b"0", {"key": 0}),
        (b"null", {"key": None}),
        (b'{"id":"\\ud800"}', {"key": {"id": "\ud800"}}),
    ],
)
def test_a_key_of_any_bytes_stands_in_the_folder_as_they_are(
    key: bytes, shown: dict[str, object], tmp_path: Path
) -> None:
    report = TableReport("d.t", "p", differences=[Difference(key, EXTRA), *WRONG_ROW.differences], odd={key})
    report.history = [Difference(key, "sent_twice", note="2 records")]

    write_differences([report], tmp_path)

    lines = [json.loads(line, parse_constant=pytest.fail) for line in (tmp_path / "d.t.jsonl").read_text().splitlines()]
    assert lines == [
        {**shown, "kind": "extra"},
        {"key": {"id": 1}, "kind": "wrong", "columns": ["qty"]},
        {**shown, "kind": "sent_twice", "note": "2 records"},
    ]
    assert (tmp_path / "d.t.keys.jsonl").read_text() == '{"id":1}\n'


def test_each_key_stands_in_the_folder(tmp_path: Path) -> None:
    unproved = Difference(b'{"id":2}', "unverifiable")
    report = TableReport("d.t", "p", differences=[Difference(b'{"id":1}', MISSING), *WRONG_ROW.differences, unproved])
    report.history = [Difference(b'{"id":3}', "sent_twice", note="2 records")]

    write_differences([report], tmp_path / "new")

    lines = [json.loads(line) for line in (tmp_path / "new" / "d.t.jsonl").read_text().splitlines()]
    assert lines == [
        {"key": {"id": 1}, "kind": "missing"},
        {"key": {"id": 1}, "kind": "wrong", "columns": ["qty"]},
        {"key": {"id": 2}, "kind": "unverifiable"},
        {"key": {"id": 3}, "kind": "sent_twice", "note": "2 records"},
    ]
    assert (tmp_path / "new" / "d.t.keys.jsonl").read_text() == '{"id":1}\n{"id":1}\n'
