"""Signals: Debezium's rules for good ones; every bad one is an InvalidSignal with a reason and a way out."""

from __future__ import annotations

import gc
import json
import os
import time
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import KafkaException

from signals import send
from signals.channels.file import SignalFile, record_of
from signals.channels.source_table import records_of
from signals.condition import condition_problem
from signals.parse import parse
from signals.records import (
    AdditionalCondition,
    InvalidSignal,
    Signal,
    SignalRecord,
    SignalType,
)
from signals.resolve import Resolved, conditions_of, resolve


def _parse(kind: str | None, data: Any) -> Signal | InvalidSignal:
    return parse(SignalRecord("s1", kind, data))


_EXECUTE: SignalType = "execute-snapshot"
_PLACE: SignalType = "set-binlog-position"
_UUID = "3e11fa47-71ca-11e1-9e33-c80aa9429562"
_STOP: SignalType = "stop-snapshot"


def _blocking(table: str, statement: str) -> dict[str, Any]:
    return {
        "type": "blocking",
        "data-collections": [table],
        "additional-conditions": [{"data-collection": table, "filter": statement}],
    }


@pytest.mark.parametrize(
    ("kind", "data", "signal"),
    [
        (_EXECUTE, {"data-collections": ["a.b"]}, Signal("s1", _EXECUTE, ("a.b",))),
        (
            _EXECUTE,
            '{"type":"INCREMENTAL","data-collections":[" a.b ","c.*"]}',
            Signal("s1", _EXECUTE, ("a.b", "c.*")),
        ),
        (
            _EXECUTE,
            {
                "data-collections": ["a.b"],
                "additional-conditions": [{"data-collection": "a.b", "filter": "x = 'a)(' AND (y > 1)"}],
                "surrogate-key": "created",
            },
            Signal(
                "s1", "execute-snapshot", ("a.b",), (AdditionalCondition("a.b", "x = 'a)(' AND (y > 1)"),), "created"
            ),
        ),
        (_EXECUTE, {"data-collections": ["a.b"], "more": 1}, Signal("s1", _EXECUTE, ("a.b",))),
        (_STOP, None, Signal("s1", _STOP)),
        (_STOP, "", Signal("s1", _STOP)),
        (_STOP, {"data-collections": []}, Signal("s1", _STOP)),
        (
            "stop-snapshot",
            {"type": "incremental", "data-collections": ["a.b"]},
            Signal("s1", _STOP, ("a.b",)),
        ),
        (
            _EXECUTE,
            _blocking("a.b", "select * from `a`.b where id > 1 and (v = 'LIMIT')"),
            Signal("s1", _EXECUTE, ("a.b",), (AdditionalCondition("a.b", "id > 1 and (v = 'LIMIT')"),), blocking=True),
        ),
        (
            _EXECUTE,
            _blocking("a.b", "SELECT * FROM a.b"),
            Signal("s1", _EXECUTE, ("a.b",), (AdditionalCondition("a.b", ""),), blocking=True),
        ),
        (_EXECUTE, {"data-collections": ["a.b"], "surrogate-key": ""}, Signal("s1", _EXECUTE, ("a.b",))),
        (_EXECUTE, {"data-collections": ["a.b"], "surrogate-key": " \t"}, Signal("s1", _EXECUTE, ("a.b",))),
        (_EXECUTE, {"data-collections": ["a.b"], "type": None}, Signal("s1", _EXECUTE, ("a.b",))),
        (_EXECUTE, {"data-collections": ["a.b"], "additional-condition": ""}, Signal("s1", _EXECUTE, ("a.b",))),
        (
            _EXECUTE,
            {"data-collections": ["a.b"], "additional-conditions": [{"data-collection": "a.b", "filter": ""}]},
            Signal("s1", _EXECUTE, ("a.b",), (AdditionalCondition("a.b", ""),)),
        ),
        (_STOP, {"type": None}, Signal("s1", _STOP)),
        (
            _EXECUTE,
            _blocking("a.*", "id > 1"),
            Signal("s1", _EXECUTE, ("a.*",), (AdditionalCondition("a.*", "id > 1"),), blocking=True),
        ),
        (_STOP, {"type": "Blocking"}, Signal("s1", _STOP)),
        ("pause-snapshot", '{"type":"incremental"}', Signal("s1", "pause-snapshot")),
        ("pause-snapshot", "null", Signal("s1", "pause-snapshot")),
        (" resume-snapshot ", {}, Signal("s1", "resume-snapshot")),
        ("log", {"message": "at {}"}, Signal("s1", "log", message="at {}")),
        (
            _PLACE,
            {"gtid_set": f"{_UUID}:1-3:7, {_UUID}:tagged:5"},
            Signal("s1", _PLACE, gtid_set=f"{_UUID}:1-3:7,{_UUID}:tagged:5"),
        ),
        (
            _PLACE,
            {"binlog_filename": "b-1.000003", "binlog_position": 0},
            Signal("s1", _PLACE, binlog=("b-1.000003", 0)),
        ),
    ],
)
def test_a_good_record_becomes_its_signal(kind: str, data: Any, signal: Signal) -> None:
    assert _parse(kind, data) == signal


@pytest.mark.parametrize(
    ("kind", "data", "reason"),
    [
        (None, {}, "type None is unknown"),
        ("", {}, "is unknown"),
        ("Execute-Snapshot", {}, "is unknown"),
        ("explode", {}, "'explode' is unknown"),
        ("schema-changes", {}, "not supported"),
        (_PLACE, {}, "binlog_filename None is not a binlog file"),
        (_PLACE, {"gtid_set": _UUID}, "not a GTID set"),
        (_PLACE, {"gtid_set": "binlog.000003"}, "not a GTID set"),
        (_PLACE, {"gtid_set": 7}, "not a GTID set"),
        (_PLACE, {"gtid_set": f"{_UUID}:1-9", "binlog_position": 4}, "a GTID set and a file or position"),
        (_PLACE, {"gtid_set": f"{_UUID}:1-9", "binlog_filename": "b.000001"}, "a GTID set and a file or position"),
        (_PLACE, {"binlog_filename": "b.000001"}, "binlog_position None is not a position"),
        (_PLACE, {"binlog_filename": "b.000001", "binlog_position": -1}, "-1 is not a position"),
        (_PLACE, {"binlog_filename": "b.000001", "binlog_position": True}, "True is not a position"),
        (_PLACE, {"binlog_filename": "../b.000001", "binlog_position": 4}, "not a binlog file"),
        (_EXECUTE, "{", "not JSON"),
        (_EXECUTE, "[" * 100_000, "not JSON"),
        (_EXECUTE, "1" * 10_000, "not JSON"),
        (_EXECUTE, "[1]", "not a JSON object"),
        (_EXECUTE, 7, "not a JSON object"),
        (_EXECUTE, b"{}", "not a JSON object"),
        (_EXECUTE, None, "data-collections is missing"),
        (_EXECUTE, {"data-collections": []}, "data-collections is missing"),
        (_EXECUTE, {"data-collections": "a.b"}, "not a list of strings"),
        (_EXECUTE, {"data-collections": ["a.b", 1]}, "not a list of strings"),
        (_EXECUTE, {"data-collections": [["a.b"]]}, "not a list of strings"),
        (_EXECUTE, {"data-collections": ["a.b", " "]}, "not a list of strings"),
        (_EXECUTE, {"data-collections": ["a.(b"]}, "not a regular expression"),
        (_EXECUTE, {"data-collections": ["a.b"], "type": "quick"}, "'quick' is unknown"),
        (_EXECUTE, {"data-collections": ["a.b"], "type": ""}, "'' is unknown"),
        (_EXECUTE, {"data-collections": ["a.b"], "additional-condition": "x=1"}, "no longer used"),
        (_EXECUTE, {"data-collections": ["a.b"], "additional-conditions": "x=1"}, "not a list"),
        (_EXECUTE, {"data-collections": ["a.b"], "additional-conditions": ["x=1"]}, "not an object"),
        (_EXECUTE, {"data-collections": ["a.b"], "additional-conditions": [{"filter": "1"}]}, "no data-collection"),
        (
            _EXECUTE,
            {"data-collections": ["a.b"], "additional-conditions": [{"data-collection": "a.b"}]},
            "has no filter",
        ),
        (
            _EXECUTE,
            {"data-collections": ["a.b"], "additional-conditions": [{"data-collection": "a.b", "filter": "1) OR (1"}]},
            "is closed that was not opened",
        ),
        (_EXECUTE, {"data-collections": ["a.b"], "surrogate-key": ["x"]}, "not a column's name"),
        (_STOP, {"data-collections": [1]}, "not a list of strings"),
        (_STOP, {"type": "quick"}, "'quick' is unknown"),
        (_EXECUTE, _blocking("a.b", "SELECT id FROM a.b WHERE id = 1"), "not a SELECT * of one table"),
        (_EXECUTE, _blocking("a.b", "SELECT * FROM a.c WHERE id = 1"), "does not read a.b"),
        (_EXECUTE, _blocking("a.b", "SELECT * FROM a.b WHERE id = 1 LIMIT 5"), "stands LIMIT"),
        (_EXECUTE, _blocking("a.*", "SELECT * FROM a.b WHERE id = 1"), "more than one table"),
        ("pause-snapshot", "{", "not JSON"),
        ("log", {}, "message is missing"),
        ("log", {"message": 7}, "message is missing"),
        ("log", {"message": "\ud800"}, "message is missing"),
        (_EXECUTE, {"data-collections": ["a" * 2_049]}, "2049 characters, and 2048 are the most"),
        (_EXECUTE, {"data-collections": ["a{999}{999}"]}, "not a regular expression"),
        (_EXECUTE, {"data-collections": ["((a{999}){999}){999}"]}, "invalid repetition size"),
        (_EXECUTE, {"data-collections": ["(?=x)((a{99}){99}){99}"]}, "too large"),
        (_EXECUTE, {"data-collections": ["(?=x)" + "a" * 256]}, "too large"),
        (_EXECUTE, {"data-collections": ["a\ud800"]}, "lone surrogate"),
        (_EXECUTE, {"data-collections": ["a.b"] * 10_001}, "10001 entries"),
        (_EXECUTE, '{"data-collections": ["' + "a" * (1 << 20) + '"]}', "1048576 are the most"),
        (_EXECUTE, {"data-collections": ["a.b"], "surrogate-key": "k" * 65}, "not a column's name"),
        (
            _EXECUTE,
            {
                "data-collections": ["a.b"],
                "additional-conditions": [{"data-collection": "a.b", "filter": "a = 1" + " " * 9_995 + "+ 1"}],
            },
            "10003 characters, and 10000 are the most",
        ),
        (
            _EXECUTE,
            {
                "data-collections": ["a.b"],
                "additional-conditions": [{"data-collection": "a.b", "filter": "a = '\ud800'"}],
            },
            "lone surrogate",
        ),
    ],
)
def test_a_bad_record_becomes_an_invalid_signal_with_reason_and_hint(kind: str | None, data: Any, reason: str) -> None:
    signal = _parse(kind, data)
    assert isinstance(signal, InvalidSignal)
    assert signal.id == "s1"
    assert reason in signal.reason
    assert signal.hint
    assert len(signal.reason) < 300
    assert signal.reason.encode()


@pytest.mark.parametrize("name", ["i" * 256, "\ud800"])
def test_an_id_that_cannot_be_told_again_makes_a_signal_invalid(name: str) -> None:
    signal = parse(SignalRecord(name, "pause-snapshot", {}))
    assert isinstance(signal, InvalidSignal)
    assert len(signal.id.encode()) <= 400


def test_an_id_of_many_brackets_is_reported() -> None:
    nested = b"[" * 900 + b"]" * 900
    signal = parse(record_of(b'{"id": ' + nested + b', "type": "pause-snapshot"}', "7", "kafka"))
    assert isinstance(signal, InvalidSignal)
    assert "id or type of the signal is not a string" in signal.reason


def test_watermarks_of_another_connector_are_passed_over_quietly() -> None:
    signal = _parse("snapshot-window-open", '{"openWindowTimestamp": "x"}')
    assert isinstance(signal, InvalidSignal)
    assert signal.quiet


def test_a_record_without_id_is_named_by_its_place() -> None:
    record = SignalRecord(None, "pause-snapshot", {}, "kafka", "17")
    assert parse(record) == Signal("kafka-17", "pause-snapshot")


@pytest.mark.parametrize(
    ("sql", "closed"),
    [
        ("a = 1", True),
        ("name = 'it''s -- no comment' AND `od)d` > (1 + 2)", True),
        (r"name = 'a\'b)' OR x IN (\"(\", 2)", True),
        ("a - -1", True),
        ("a--1 > 2", True),
        ("a = '\\')'", True),
        ("(a = 1) OR (b = 2)", True),
        ("a --\u00a01", True),
        ("", False),
        ("1) OR (1", False),
        ("a = 1 --", False),
        ("a = 1 --\n", False),
        ("a = 1 --\x01 ) OR (1", False),
        ("a = 1 --\x7f) OR 1 = 1 --\x1f", False),
        ("a = 1 ---\x02", False),
        ("`a\\` = 1) OR (1 = `b`", False),
        ("a = 'x", False),
        ("(a = 1", False),
        ("a = 1)", False),
        ("a = 1; DROP TABLE t", False),
        ("a = 1 -- ", False),
        ("a = 1 # x", False),
        ("a /* x */ = 1", False),
    ],
)
def test_a_filter_must_be_closed_in_itself(sql: str, closed: bool) -> None:
    assert (condition_problem(sql.replace('\\"', '"')) is None) is closed


_CAPTURED = ("a.one", "a.two", "b.one", "b.T")


@pytest.mark.parametrize(
    ("patterns", "tables", "unknown"),
    [
        (("a.one",), ("a.one",), ()),
        ((r"a\.one",), ("a.one",), ()),
        (("a.*", "a.one"), ("a.one", "a.two"), ()),
        (("b.*", "a.*"), ("b.one", "b.T", "a.one", "a.two"), ()),
        (("b.t",), (), ("b.t",)),
        (("a.on",), (), ("a.on",)),
        (("`a`.`one`",), ("a.one",), ()),
        (('"a"."one"', 'b."T"'), ("a.one", "b.T"), ()),
        (('"a"."o.*"', '"a.one'), (), ("a.o.*", '"a.one')),
        (("x.y", "a.one"), ("a.one",), ("x.y",)),
    ],
)
def test_patterns_match_wholly_and_by_letter_case_and_a_name_stands_for_itself(
    patterns: tuple[str, ...], tables: tuple[str, ...], unknown: tuple[str, ...]
) -> None:
    assert resolve(patterns, _CAPTURED) == Resolved(tables, unknown)


@pytest.mark.parametrize(
    ("pattern", "tables"),
    [
        ("B.T", ("b.T",)),
        (r"B\.t", ("b.T",)),
        ("`A`.`One`", ("a.one",)),
        ("A.*", ("a.one", "a.two")),
        ("(?!X)A.T.*", ("a.two",)),
        ("A.on", ()),
    ],
)
def test_letter_case_does_not_count_where_the_servers_names_have_none(pattern: str, tables: tuple[str, ...]) -> None:
    assert resolve([pattern], _CAPTURED, ignore_case=True).tables == tables
    assert resolve([pattern], _CAPTURED).tables == ()


def test_thousands_of_names_in_another_letter_case_are_looked_up() -> None:
    names = [f"shop.t{number}" for number in range(5_000)]
    assert resolve([name.upper() for name in names], names, ignore_case=True) == Resolved(tuple(names), ())


def test_the_first_condition_that_matches_counts_whatever_its_letter_case() -> None:
    conditions = (AdditionalCondition("A.O.*", "first"), AdditionalCondition("a.one", "second"))
    assert conditions_of(conditions, _CAPTURED) == {"a.one": "first"}
    assert conditions_of((*conditions, AdditionalCondition(".*", "last")), ("a.one", "b.one")) == {
        "a.one": "first",
        "b.one": "last",
    }
    assert conditions_of((AdditionalCondition("a.one", ""), *conditions), _CAPTURED) == {"a.one": ""}


def test_rows_of_the_signal_table_count_by_place_and_odd_ones_are_reported() -> None:
    good, long, wrong = records_of([("i", "log", None), ("i", "log", "{}", "x"), (1, "log", None)], ["p1", "p2", "p3"])
    assert good == SignalRecord("i", "log", None, "source", "p1")
    assert isinstance(parse(long), InvalidSignal)
    assert "4 columns" in str(long.problem)
    assert "text" in str(wrong.problem)


def _write(file: Path, *names: str) -> None:
    with file.open("a") as out:
        out.writelines(json.dumps({"id": name, "type": "pause-snapshot"}) + "\n" for name in names)


def test_a_file_is_read_line_by_line_from_where_it_was_left(tmp_path: Path) -> None:
    file = tmp_path / "signals.txt"
    channel = SignalFile(file)
    assert channel.poll(None).records == ()
    _write(file, "a", "b")
    first = channel.poll(None)
    assert [record.id for record in first.records] == ["a", "b"]
    assert channel.poll(first.position) == type(first)((), first.position)
    _write(file, "c")
    # The position went through the offset's JSON, and another process goes on.
    second = SignalFile(file).poll(json.loads(json.dumps(first.position)))
    assert [record.id for record in second.records] == ["c"]


def test_half_a_line_is_left_until_it_is_whole(tmp_path: Path) -> None:
    file = tmp_path / "signals.txt"
    file.write_text('{"id": "a", "type": ')
    channel = SignalFile(file)
    polled = channel.poll(None)
    assert polled.records == ()
    with file.open("a") as out:
        out.write('"pause-snapshot"}\n')
    assert [record.id for record in channel.poll(polled.position).records] == ["a"]


def test_a_file_that_was_replaced_is_read_from_its_start(tmp_path: Path) -> None:
    file = tmp_path / "signals.txt"
    channel = SignalFile(file)
    _write(file, "a", "b")
    position = channel.poll(None).position
    file.write_text("")
    _write(file, "x")
    polled = channel.poll(position)
    assert [record.id for record in polled.records] == ["x"]
    text = file.read_text()
    file.write_text(text)
    os.utime(file, ns=(1, file.stat().st_mtime_ns + 1_000_000_000))
    assert [record.id for record in channel.poll(polled.position).records] == ["x"]


def test_bad_lines_are_reported_and_the_next_ones_still_read(tmp_path: Path) -> None:
    file = tmp_path / "signals.txt"
    file.write_bytes(b"nonsense\n\n[1]\n\xff\n")
    _write(file, "a")
    records = SignalFile(file).poll(None).records
    assert [isinstance(parse(record), InvalidSignal) for record in records] == [True, True, True, False]


def test_the_file_channel_reads_what_the_sender_wrote(tmp_path: Path) -> None:
    file = tmp_path / "signals.txt"
    send.to_file(file, "i", _EXECUTE, send.snapshot_data(["a.b"], [("a.b", "x = 'ü'")], "k"))
    (record,) = SignalFile(file).poll(None).records
    assert parse(record) == Signal("i", "execute-snapshot", ("a.b",), (AdditionalCondition("a.b", "x = 'ü'"),), "k")


def test_a_signal_full_of_expressions_is_refused_before_the_stream_waits_for_them() -> None:
    expressions = [rf"db\.(orders|items)_{number}_[a-z0-9]+.*" for number in range(10_000)]
    for data in (
        {"data-collections": expressions},
        {"data-collections": ["a." + "b*" * 999] * 26},
        {
            "data-collections": ["db.t"],
            "additional-conditions": [{"data-collection": each, "filter": "x = 1"} for each in expressions],
        },
    ):
        began = time.process_time()
        signal = parse(SignalRecord("i", "execute-snapshot", data, "kafka", "1"))
        assert time.process_time() - began < 0.5
        assert isinstance(signal, InvalidSignal)
        assert "are the most" in signal.reason
    names = [f"db.table_{number}" for number in range(10_000)]
    assert isinstance(parse(SignalRecord("i", "execute-snapshot", {"data-collections": names}, "kafka", "1")), Signal)


def test_matching_many_expressions_on_many_tables_is_given_up_after_a_second() -> None:
    expressions = [rf".*(orders|items)_{number}_[a-z0-9]+" for number in range(1_000)]
    began = time.thread_time()
    with pytest.raises(TimeoutError, match="name fewer expressions"):
        resolve(expressions, [f"db.orders_{number}_{number}" for number in range(10_000)])
    assert time.thread_time() - began < 2


def test_an_expression_that_takes_for_ever_is_given_up() -> None:
    with pytest.raises(TimeoutError):
        resolve([r"(?=a)(a|aa|a*)*\.(x+x+)+y"], ["a" * 40 + ".", "a" * 40 + "." + "x" * 40])


def test_an_expression_of_re2_never_takes_for_ever() -> None:
    names = ["a" * 40 + ".", "a" * 40 + "." + "x" * 40, "a.xxy"]
    assert resolve([r"(a|aa|a*)*\.(x+x+)+y"], names) == Resolved(("a.xxy",), ())


@pytest.mark.parametrize(
    ("pattern", "tables"),
    [
        (r"a\.(?!one).*", ("a.two",)),
        (r"(?<n>a)\.\w+(?<=o)", ("a.two",)),
        (r"([ab])\.\1.*", ()),
        (r"(?>b)\.\w++", ("b.one", "b.T")),
        (r"\Qa.\E.*\z", ("a.one", "a.two")),
        (r"\u0061\.one", ("a.one",)),
    ],
)
def test_java_patterns_that_re2_lacks_are_matched(pattern: str, tables: tuple[str, ...]) -> None:
    assert resolve([pattern], _CAPTURED).tables == tables


def test_words_digits_and_blanks_mean_ascii_wherever_they_stand() -> None:
    names = ("a.one", "ä.one", "a.\u0661")
    assert resolve([r"\w+\.\w+"], names).tables == ("a.one",)
    assert resolve([r"(?=.)\w+\.\w+"], names).tables == ("a.one",)


def test_letter_case_of_a_condition_means_ascii() -> None:
    conditions = (AdditionalCondition("Ä.ONE", "x"), AdditionalCondition("ä.ONE", "y"))
    assert conditions_of(conditions, ("ä.one",)) == {"ä.one": "y"}


@pytest.mark.parametrize("rows", [0, 1, 5_000, 1_000_000_000])
def test_a_throttle_is_a_number_of_rows_a_second(rows: int) -> None:
    assert parse(SignalRecord("t", "incsnap-throttle", {"rows-per-second": rows})) == Signal(
        "t", "incsnap-throttle", limits=(("rows-per-second", rows),)
    )


@pytest.mark.parametrize("rows", [-1, 1.5, True, "9", "", 10_000_000_000])
def test_an_invalid_number_of_rows_throttles_nothing(rows: object) -> None:
    signal = parse(SignalRecord("t", "incsnap-throttle", {"rows-per-second": rows}))

    assert isinstance(signal, InvalidSignal)
    assert "rows-per-second is not a whole number" in signal.reason


def test_a_throttle_sets_each_limit_that_it_names() -> None:
    signal = parse(SignalRecord("t", "incsnap-throttle", '{"replica-lag-ms": 5000, "threads-running": null}'))

    assert signal == Signal("t", "incsnap-throttle", limits=(("replica-lag-ms", 5_000), ("threads-running", None)))


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        ({}, "no limit is named"),
        ({"replica-lag": 5_000}, "'replica-lag' is not one of: rows-per-second, replica-lag-ms"),
        ({"threads-running": 9, "commit-latency-ms": "5"}, "commit-latency-ms is not a whole number"),
    ],
)
def test_a_throttle_that_is_misspelt_changes_nothing(data: object, reason: str) -> None:
    signal = parse(SignalRecord("t", "incsnap-throttle", data))

    assert isinstance(signal, InvalidSignal)
    assert reason in signal.reason


def test_a_signal_that_kafka_does_not_take_is_an_error_without_lines_of_librdkafka(
    capfd: pytest.CaptureFixture[str],
) -> None:
    """A running job sends signals for its page, and each line of its log may have to be JSON."""
    with pytest.raises((TimeoutError, KafkaException)):
        send.to_topic("127.0.0.1:1", "signals", "shop", "1", "pause-snapshot", {}, timeout_seconds=1)
    gc.collect()  # the producer's end writes lines too
    assert capfd.readouterr().err == ""
