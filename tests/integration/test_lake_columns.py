"""Tables of Delta Lake and Iceberg that follow the columns of a MySQL table, in one query without a restart."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from pymysql.connections import Connection

from lab.addresses import MySqlAddress
from lab.fetched_lake import DELTA, LAKES, Lake
from lab.running_job import write_properties
from tests.support.frames import SIGNALS, options
from tests.support.lakes import fetched
from tests.support.online_runs import gh_ost, pt_osc, revert, spirit

pytestmark = [pytest.mark.servers, pytest.mark.long, pytest.mark.timeout(900)]

#: Statements that change the lake's table, where a step renames, drops and adds columns.
_CUTS = 12
STEPS = [
    ["INSERT INTO t VALUES (3, 'c', 0.5, 'z', 7)", "DELETE FROM t WHERE id = 2"],
    # Old rows have the DEFAULTs, though no event brings them.
    [
        "ALTER TABLE t ADD COLUMN note VARCHAR(20) DEFAULT 'it''s \\\\ new', ADD COLUMN count INT NOT NULL DEFAULT 5,"
        " ADD COLUMN at DATETIME(3) DEFAULT '2024-02-29 01:02:03.456', ADD COLUMN tag BINARY(3) DEFAULT 'abc',"
        " ADD COLUMN amount DECIMAL(6,2) DEFAULT 1.25, ADD COLUMN nothing INT",
    ],
    ["UPDATE t SET note = NULL, count = 6 WHERE id = 1", "INSERT INTO t (id, part) VALUES (4, 'd')"],
    ["ALTER TABLE t RENAME COLUMN price TO cost", "UPDATE t SET cost = 9 WHERE id = 3"],
    ["ALTER TABLE t CHANGE part piece CHAR(2)", "INSERT INTO t (id, piece, cost) VALUES (5, 'ee', 5)"],
    ["ALTER TABLE t MODIFY id INT, MODIFY n BIGINT", "INSERT INTO t (id, piece, n) VALUES (70000, 'f', 9000000000)"],
    ["ALTER TABLE t DROP COLUMN raw", "INSERT INTO t (id, piece) VALUES (6, 'g')"],
    # The batch of the first statement cannot ask MySQL any more what the table was behind it.
    [
        "ALTER TABLE t ADD COLUMN x INT DEFAULT 1",
        "INSERT INTO t (id, piece) VALUES (7, 'h')",
        "ALTER TABLE t RENAME COLUMN x TO y, ADD COLUMN z INT DEFAULT 2",
        "INSERT INTO t (id, piece) VALUES (8, 'i')",
        "ALTER TABLE t DROP COLUMN nothing",
        "UPDATE t SET y = 3 WHERE id = 8",
    ],
    ["TRUNCATE t", "INSERT INTO t (id, piece) VALUES (9, 'j')"],
    ["ALTER TABLE t DROP COLUMN z, ADD COLUMN z VARCHAR(9) DEFAULT 'again'"],
]


@pytest.fixture(params=LAKES)
def lake(request: pytest.FixtureRequest) -> Lake:
    return fetched(request.param)


@pytest.fixture
def settings(connection: Connection[Any], mysql_address: MySqlAddress, database: str, tmp_path: Path) -> Path:
    """A file of settings. The table `t` exists."""
    with connection.cursor() as cursor:
        cursor.execute(SIGNALS)
        cursor.execute(
            "CREATE TABLE t (id SMALLINT, part CHAR(2), price DECIMAL(20,4), raw VARBINARY(9), n INT, PRIMARY KEY (id))"
        )
        cursor.execute("INSERT INTO t VALUES (1, 'a', 1.5, 'x', 1), (2, 'b', NULL, NULL, NULL)")
    given = options(mysql_address, database, tmp_path, snapshot__mode="initial", skipped__operations="none")
    return write_properties(tmp_path / "shop.properties", {**given, "bootstrap.servers": "localhost:1"})


def test_columns_come_go_are_renamed_and_widen_without_a_restart(lake: Lake, settings: Path, database: str) -> None:
    lines = followed(lake, settings, database, STEPS)

    assert [line.get("error") or line["difference"] for line in lines] == [""] * len(STEPS)
    columns = lines[-1]["columns"]
    assert {"id int", "n bigint", "cost decimal(20,4)", "piece string", "y int", "z string"} <= set(columns)


def test_a_query_that_lags_follows_the_same_statements(lake: Lake, settings: Path, database: str) -> None:
    # TRUNCATE would hide what the statements before it have done.
    later = [each for step in STEPS[1:] for each in step if "TRUNCATE" not in each]
    lines = followed(lake, settings, database, [STEPS[0], later], "--lag")

    assert [line.get("error") or line["difference"] for line in lines] == ["", ""]


@pytest.mark.parametrize("more", [(), ("--plain",)], ids=["new", "of an earlier release"])
def test_a_query_starts_again_on_columns_whose_names_spark_redacts(
    lake: Lake, settings: Path, database: str, more: tuple[str, ...]
) -> None:
    steps = [
        ["UPDATE t SET n = 2"],
        ["ALTER TABLE t ADD COLUMN image_url INT DEFAULT 1, ADD COLUMN token INT"],
        ["UPDATE t SET image_url = 2, token = 3 WHERE id = 1"],
    ]
    lines = followed(lake, settings, database, steps, "--lag", *more)

    assert [line.get("error") or line["difference"] for line in lines] == ["", "", ""]


@pytest.mark.parametrize("more", [(), ("--lag",)], ids=["back to back", "behind"])
def test_old_rows_keep_the_default_of_the_statement_that_added_the_column(
    lake: Lake, settings: Path, database: str, more: tuple[str, ...]
) -> None:
    later = [
        "ALTER TABLE t ADD COLUMN legacy INT DEFAULT 1, ADD COLUMN anew INT DEFAULT 5",
        "ALTER TABLE t ALTER legacy SET DEFAULT 0, DROP COLUMN anew",
        "ALTER TABLE t ADD COLUMN anew INT",
        "INSERT INTO t (id) VALUES (9)",
    ]
    lines = followed(lake, settings, database, [["UPDATE t SET n = 2"], later], *more)

    assert [line.get("error") or line["difference"] for line in lines] == ["", ""]


@pytest.mark.parametrize(
    ("columns", "altered", "kept", "new"),
    [
        (
            "ADD COLUMN old_0 INT, ADD COLUMN was_0 INT DEFAULT 3, ADD COLUMN wide_0 SMALLINT",
            "DROP COLUMN old_{before}, RENAME COLUMN was_{before} TO was_{at}, MODIFY wide_{before} INT,"
            " ADD COLUMN old_{at} INT DEFAULT {at}, ADD COLUMN wide_{at} SMALLINT",
            "was_{before}",
            "old_{at}",
        ),
        (
            "ADD COLUMN last INT DEFAULT -2, ADD COLUMN present INT DEFAULT -1, ADD COLUMN next INT DEFAULT 0",
            "DROP COLUMN last, CHANGE present last INT, CHANGE next present INT, ADD COLUMN next INT DEFAULT {at}",
            "present",
            "next",
        ),
    ],
    ids=["new names", "names that are taken again"],
)
def test_a_query_that_is_cut_off_between_two_steps_goes_on(
    lake: Lake, settings: Path, database: str, columns: str, altered: str, kept: str, new: str
) -> None:
    steps = [[f"ALTER TABLE t {columns}"]]
    for at in range(1, _CUTS + 1):
        update, alter, added = (each.format(before=at - 1, at=at) for each in (kept, altered, new))
        steps.append([f"UPDATE t SET {update} = {at} WHERE id = 1", f"DELETE FROM t WHERE id = {at + 1}"])
        steps[-1] += [f"ALTER TABLE t {alter}", f"INSERT INTO t (id, part, {added}) VALUES ({at + 2}, 'x', 0)"]

    lines = followed(lake, settings, database, steps, "--cut")

    assert [line["difference"] for line in lines if "difference" in line] == [""] * len(steps)
    assert [line["cut"] for line in lines if "cut" in line] == list(range(1, _CUTS + 1))


def test_each_swap_of_an_online_schema_change_is_one_alteration(lake: Lake, settings: Path, database: str) -> None:
    columns = {"id": "smallint NOT NULL", "part": "char(2)", "price": "decimal(20,4)", "raw": "varbinary(9)"}
    steps, former = [["UPDATE t SET n = 2"]], "n"
    for at, tool in enumerate(("gh-ost", "two-step", "pt-osc", "drop_swap", "spirit"), 1):
        name, new = f"n_{at}", f"k_{at}"
        alter = f"CHANGE {former} {name} INT, ADD COLUMN {new} INT DEFAULT {at}"
        run, swap, copy = tool_run(tool, database, alter, {**columns, former: "int"})
        kept = ", ".join(columns)
        copied = f"INSERT INTO {copy} ({kept}, {name}) SELECT {kept}, {former} FROM t"
        steps.append([f"UPDATE t SET {former} = {at} WHERE id = 1", *run, copied, *swap])
        steps[-1].append(f"INSERT INTO t (id, part, {new}) VALUES ({at + 10}, 'z', 50)")
        columns[new], former = "int DEFAULT NULL", name

    lines = followed(lake, settings, database, steps)

    assert [line.get("error") or line["difference"] for line in lines] == [""] * len(steps)
    assert {f"{former} int", *(f"k_{at} int" for at in range(1, len(steps)))} <= set(lines[-1]["columns"])


def test_rows_are_read_again_for_values_that_no_statement_tells(lake: Lake, settings: Path, database: str) -> None:
    with settings.open("a") as file:
        file.write("incsnap.online.ddl.reread=changed\n")
    run, swap = divided(gh_ost(database, alter="DROP n", drops_old=False))
    copied = "INSERT INTO _t_gho SELECT id, part, price, raw, total FROM t"
    steps = [
        ["ALTER TABLE t ALTER n SET DEFAULT 7", "UPDATE t SET n = 2 WHERE id = 2"],
        ["ALTER TABLE t ADD COLUMN total VARCHAR(20) DEFAULT (CONCAT('x', id))"],
        [*run, copied, *swap],
        # The revert brings back what MySQL had in `n`, and not its DEFAULT.
        [*(f"UPDATE {name} SET part = 'y' WHERE id = 1" for name in ("t", "_t_del")), *revert(database)],
    ]

    lines = followed(lake, settings, database, steps)

    assert [line.get("error") or line["difference"] for line in lines] == [""] * len(steps)
    assert {"n int", "total string"} <= set(lines[-1]["columns"])
    assert "n int" not in lines[2]["columns"]


def test_numbers_widen_as_far_as_the_format_can(lake: Lake, settings: Path, database: str) -> None:
    steps = [
        ["ALTER TABLE t ADD COLUMN f FLOAT DEFAULT 0.5, ADD COLUMN w INT DEFAULT 3", "UPDATE t SET f = 2 WHERE id = 2"],
        [
            "ALTER TABLE t MODIFY f DOUBLE, MODIFY price DECIMAL(24,4)",
            "INSERT INTO t (id, f, price) VALUES (3, 1e300, 12345678901234567890.5)",
        ],
        [
            "ALTER TABLE t MODIFY price DECIMAL(28,6), MODIFY n DOUBLE, MODIFY w DECIMAL(14,2)",
            "INSERT INTO t (id, price, n, w) VALUES (4, 0.000001, 0.25, 123456789012.25)",
        ],
    ]

    lines = followed(lake, settings, database, steps)

    widened = ["f double", "price decimal(24,4)", "n int", "w int"]
    assert [line["difference"] for line in lines[:2]] == ["", ""]
    assert set(widened) <= set(lines[1]["columns"])
    if lake is DELTA:
        assert lines[2]["difference"] == ""
        assert {"f double", "price decimal(28,6)", "n double", "w decimal(14,2)"} <= set(lines[2]["columns"])
    else:
        assert "iceberg cannot change column price, which is decimal(28,6) now" in lines[2]["error"]


def test_a_change_that_a_format_cannot_carry_is_refused_by_name(lake: Lake, settings: Path, database: str) -> None:
    lines = followed(lake, settings, database, [["UPDATE t SET n = 2"], ["ALTER TABLE t MODIFY n VARCHAR(20)"]])

    assert lines[0]["difference"] == ""
    error = lines[-1]["error"]
    assert "merge_into cannot follow MySQL's columns into" in error
    assert "ALTER TABLE t MODIFY n VARCHAR(20)" in error
    assert f"{lake.format} cannot change column n, which is string now, and int in the lake" in error


@pytest.mark.parametrize(
    "renames",
    [["RENAME TABLE t TO old, u TO t"], ["ALTER TABLE t RENAME TO old", "ALTER TABLE u RENAME TO t"]],
    ids=["at once", "in two steps"],
)
def test_a_table_that_takes_the_place_of_another_is_refused_if_columns_may_be_renamed(
    lake: Lake, settings: Path, database: str, renames: list[str]
) -> None:
    if lake is not DELTA:
        pytest.skip("the rule does not depend on the format")
    swap = ["CREATE TABLE u LIKE t", "ALTER TABLE u DROP COLUMN n, ADD COLUMN m INT", *renames]
    lines = followed(lake, settings, database, [["UPDATE t SET n = 2"], swap])

    assert "columns n may be m under new names" in lines[-1]["error"]


def tool_run(tool: str, database: str, alter: str, columns: dict[str, str]) -> tuple[Sequence[str], Sequence[str], str]:
    """Return the statements of a tool that alters `t` up to its swap, those from there on, and the name of its copy.

    `columns` are those of `t`.
    """
    if tool in ("gh-ost", "two-step"):
        return *divided(gh_ost(database, alter=alter, two_step=tool == "two-step")), "_t_gho"
    if tool == "spirit":
        return *divided(spirit(database, alter=alter)), "_t_new"
    definition = ",\n  ".join([*(f"`{name}` {type_}" for name, type_ in columns.items()), "PRIMARY KEY (`id`)"])
    run, swap = divided(pt_osc(database, alter=alter, definition=definition))
    if tool == "drop_swap":  # a value of --alter-foreign-keys-method
        swap = [
            "SET foreign_key_checks = 0",
            "DROP TABLE IF EXISTS t",
            f"RENAME TABLE `{database}`.`_t_new` TO `{database}`.`t`",
        ]
    return run, swap, "_t_new"


def divided(run: list[str]) -> tuple[list[str], list[str]]:
    """Return the statements before the swap, and those from there on."""
    swap = next(at for at, statement in enumerate(run) if "rename" in statement.lower())
    return run[:swap], run[swap:]


def followed(lake: Lake, settings: Path, database: str, steps: list[list[str]], *more: str) -> list[dict[str, Any]]:
    """Return what `lake_columns` tells of each step."""
    command = [sys.executable, "-m", "tests.support.lake_columns", str(settings), f"{database}.t"]
    command += ["--format", lake.format, "--warehouse", str(settings.parent / "warehouse"), *more]
    for step in steps:
        command += ["--step", json.dumps([f"USE `{database}`", *step])]
    done = subprocess.run(command, env=lake.environment(), capture_output=True, text=True, timeout=800, check=False)
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    assert sum("difference" in line for line in lines) == len(steps) or "error" in lines[-1], done.stderr[-6_000:]
    return lines
