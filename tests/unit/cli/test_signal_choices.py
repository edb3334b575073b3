"""The options of `incsnap signal` that choose rows: the fields that each one sends, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from incsnap.cli.main import commands
from incsnap.cli.signal_command import signal
from signals.channels.file import SignalFile
from signals.chosen import FIELDS, MAX_KEYS

_JOB = """
database.hostname=127.0.0.1
database.port=1
database.user=cdc
connect.timeout.ms=1000
topic.prefix=shop
bootstrap.servers=127.0.0.1:1
checkpoint.location={folder}/checkpoint
snapshot.mode=no_data
table.include.list=a.b,a.c
signal.enabled.channels=file
signal.file={folder}/signals.txt
"""
_EXECUTE = ["execute-snapshot", "--table", "a.b"]
_ONE = ["--keys", '[{"id": 5}]']


def ask(folder: Path, *options: str, kind: str = "") -> Result:
    """Send a signal with `options` to a job whose signal file lies in `folder`. MySQL does not answer.

    `kind`: the signal's type; "" for an execute-snapshot of a table.
    """
    file = folder / "job.properties"
    file.write_text(_JOB.format(folder=folder))
    arguments = ["--log-level", "error", "signal", str(file), *([kind] if kind else _EXECUTE), *options]
    result = CliRunner().invoke(commands, arguments)
    assert result.exception is None or isinstance(result.exception, SystemExit)
    return result


@pytest.mark.parametrize(
    ("options", "fields"),
    [
        (["--keys", '[{"id": 5}, {"id": 7}]'], {"incsnap-keys": [{"id": 5}, {"id": 7}]}),
        (["--keys-file", "/no/such/file"], {"incsnap-keys-file": "/no/such/file"}),
        (["--keys-topic", "lost"], {"incsnap-keys-topic": "lost"}),
        ([*_ONE, "--absent", "delete"], {"incsnap-keys": [{"id": 5}], "incsnap-absent": "delete"}),
        (["--keys-file", "k", "--absent", "count"], {"incsnap-keys-file": "k", "incsnap-absent": "count"}),
        ([*_ONE, "--whole-table"], {"incsnap-keys": [{"id": 5}], "incsnap-whole-table": True}),
        (["--from", '{"id": 1000}'], {"incsnap-from": {"id": 1000}}),
        (["--to", '{"at": "2026-01-01 00:00:00"}'], {"incsnap-to": {"at": "2026-01-01 00:00:00"}}),
        (["--from", '{"id": null}', "--to", '{"id": 9}'], {"incsnap-from": {"id": None}, "incsnap-to": {"id": 9}}),
        (["--sample", "1/100"], {"incsnap-sample": "1/100"}),
        (["--sample", "1/100", "--seed", "0"], {"incsnap-sample": "1/100", "incsnap-seed": 0}),
        (
            ["--from", '{"id": 1}', "--sample", "1/2", "--seed", "7"],
            {"incsnap-from": {"id": 1}, "incsnap-sample": "1/2", "incsnap-seed": 7},
        ),
    ],
)
def test_an_option_sends_its_field_and_no_other(tmp_path: Path, options: list[str], fields: dict[str, Any]) -> None:
    result = ask(tmp_path, *options)

    assert result.exit_code == 0, result.output
    (record,) = SignalFile(tmp_path / "signals.txt").poll(None).records
    assert record.data == {"type": "incremental", "data-collections": ["a.b"], **fields}


@pytest.mark.parametrize(
    ("kind", "options", "named"),
    [
        ("stop-snapshot", ["--table", "a.b", *_ONE], "--keys has no meaning for stop-snapshot"),
        ("stop-snapshot", ["--table", "a.b", "--condition", "id = 1"], "--condition has no meaning for stop-snapshot"),
        ("incsnap-throttle", ["--rows-per-second", "9", "--sample", "1/2"], "belongs to execute-snapshot"),
        ("pause-snapshot", ["--table", "a.b"], "belongs to execute-snapshot and stop-snapshot"),
        ("execute-snapshot", ["--table", "a.b", "--limit", "chunk-rows", "1"], "belongs to incsnap-throttle"),
        ("log", ["--message", "m", "--whole-table"], "--whole-table has no meaning for log"),
        ("resume-snapshot", ["--gtid-set", ""], "belongs to set-binlog-position"),
    ],
)
def test_an_option_of_another_type_is_refused(tmp_path: Path, kind: str, options: list[str], named: str) -> None:
    result = ask(tmp_path, *options, kind=kind)

    assert result.exit_code != 0
    assert named in " ".join(result.output.split())
    assert not (tmp_path / "signals.txt").exists()


def test_each_field_that_chooses_rows_has_an_option() -> None:
    options = {option for each in signal.params for option in each.opts}
    assert {f"--{field.removeprefix('incsnap-')}" for field in FIELDS} <= options


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (["--keys", "[{id: 5}]"], "--keys is not JSON: Expecting property name enclosed in double quotes"),
        (["--keys", '[{"id": 5}'], 'Write it as [{"id": 5}], in quotes of your shell'),
        (["--keys", "[" * 100_000], "--keys is not JSON: "),
        (["--from", "5 }"], "--from is not JSON: Extra data"),
        (["--to", ""], 'Write it as {"id": 5}, in quotes of your shell'),
        (["--keys", "null"], "--keys is null"),
        (["--from", "null"], "--from is null"),
        (["--to", " null "], "--to is null"),
        (["--keys", '{"id": 5}'], "incsnap-keys is not a list of keys"),
        (["--keys", "[]"], "incsnap-keys is not a list of keys"),
        (["--keys", '[{"id": NaN}]'], "incsnap-keys holds nan, which is no number of MySQL"),
        (["--keys", json.dumps([{"id": 5}] * (MAX_KEYS + 1))], "incsnap-keys has 10001 keys, and 10000 are the most"),
        (["--keys-file", " "], "incsnap-keys-file is no text"),
        ([*_ONE, "--keys-file", "k"], "incsnap-keys and incsnap-keys-file exclude each other"),
        (["--keys-topic", "t", "--keys-file", "k"], "incsnap-keys-topic and incsnap-keys-file exclude each other"),
        ([*_ONE, "--from", '{"id": 1}'], "incsnap-from has no meaning beside keys"),
        (["--keys-file", "k", "--to", '{"id": 1}'], "incsnap-to has no meaning beside keys"),
        (["--keys-topic", "t", "--sample", "1/2"], "incsnap-sample has no meaning beside keys"),
        ([*_ONE, "--surrogate-key", "at"], "surrogate-key has no meaning beside keys"),
        ([*_ONE, "--table", "a.c"], "keys and ranges belong to one table"),
        (["--to", '{"id": 1}', "--table", "a.c"], "keys and ranges belong to one table"),
        (["--from", '{"id": 1}', "--to", '{"at": 1}'], "incsnap-from and incsnap-to name different columns"),
        (["--from", '{"id": [1]}'], "incsnap-from holds a list or an object as a value"),
        (["--absent", "delete"], "incsnap-absent needs keys"),
        ([*_ONE, "--absent", "drop"], "'drop' is not one of 'count', 'delete'"),
        (["--sample", "100"], "incsnap-sample is not of the form 1/100"),
        (["--seed", "7"], "incsnap-seed needs incsnap-sample"),
        (["--sample", "1/2", "--seed", "-1"], "incsnap-seed is not a whole number from 0 to 4294967295"),
        (["--sample", "1/2", "--seed", "x"], "'x' is not a valid integer"),
    ],
)
def test_a_wrong_choice_is_refused_and_not_sent(tmp_path: Path, options: list[str], reason: str) -> None:
    result = ask(tmp_path, *options)

    assert result.exit_code == 2, result.output
    assert reason in " ".join(result.output.split())
    assert not (tmp_path / "signals.txt").exists()


def test_most_keys_of_a_signal_are_sent(tmp_path: Path) -> None:
    keys = [{"id": number} for number in range(MAX_KEYS)]

    assert ask(tmp_path, "--keys", json.dumps(keys)).exit_code == 0

    (record,) = SignalFile(tmp_path / "signals.txt").poll(None).records
    assert isinstance(record.data, dict)
    assert record.data["incsnap-keys"] == keys
