"""Tests of `inconsistent.schema.handling.mode` under `binlog_row_metadata=MINIMAL`.

Rows of unknown definitions are left out, and their table is read again.
"""

from __future__ import annotations

from typing import Any

import pytest

from incsnap.errors import DefinitionUnknown
from tests.support.minimal_shop import Shop, row

pytestmark = pytest.mark.servers


def not_followed(shop: Shop, change: str) -> None:
    """Change `t` by a statement that nobody can follow: the text of a client without a character set."""
    shop.run("SET NAMES binary", f"ALTER TABLE t {change} COMMENT 'é'", "SET NAMES utf8mb4")


def lenient(shop: Shop) -> None:
    shop.job_with(
        inconsistent__schema__handling__mode="warn",
        notification__enabled__channels="sink",
        notification__sink__topic__name=f"{shop.prefix}-notes",
        value__converter="org.apache.kafka.connect.json.JsonConverter",
        value__converter__schemas__enable="false",
    )


def notes(shop: Shop) -> list[dict[str, Any]]:
    return [each.value for each in shop.job.of(f"{shop.prefix}-notes")]


def test_rows_of_an_unknown_definition_are_left_out_and_their_table_is_read_again(
    shop: Shop, caplog: pytest.LogCaptureFixture
) -> None:
    lenient(shop)
    shop.run("CREATE TABLE u (id INT PRIMARY KEY)")
    shop.knows("t", "u")
    shop.job.restart()
    shop.insert("t", (1, "a", "b", "y"))
    not_followed(shop, "CHANGE a c VARCHAR(20)")
    shop.insert("t", (2, "c", "b", "x"))
    shop.insert("u", (7,))
    shop.run("DELETE FROM t WHERE id = 1")
    not_followed(shop, "CHANGE c d VARCHAR(20)")
    shop.insert("t", (3, "d", "b", "x"))
    shop.job.batches_until(lambda: "COMPLETED" in [each["type"] for each in notes(shop)], "the second reading")
    assert shop.sent("u") == [{"id": 7}]
    rows = shop.sent("t")
    assert rows[0] == row(1, "a", "b", "y")
    new = [{"id": 2, "d": "c", "b": "b", "e": "x"}, {"id": 3, "d": "d", "b": "b", "e": "x"}]
    assert [each for each in rows[1:] if each in new] == rows[1:]
    assert {each["id"] for each in rows[1:]} == {2, 3}
    [left_out] = [each["additional_data"] for each in notes(shop) if each["type"] == "ROWS_LEFT_OUT"]
    assert left_out["scanned_collection"] == f"{shop.database}.t"
    assert "deletions among them are lost" in left_out["reason"]
    [warning] = [each.getMessage() for each in caplog.records if "They are left out" in each.getMessage()]
    assert "CHANGE a c" in warning
    shop.insert("t", (4, "d", "b", "x"))
    shop.job.batches_until(lambda: {"id": 4, "d": "d", "b": "b", "e": "x"} in shop.sent("t"), "rows behind it")


def test_a_job_that_has_stopped_goes_on_where_rows_may_be_left_out(shop: Shop) -> None:
    shop.knows("t")
    shop.job.restart()
    not_followed(shop, "CHANGE a c VARCHAR(20)")
    shop.insert("t", (2, "c", "b", "x"))
    not_followed(shop, "CHANGE c d VARCHAR(20)")
    with pytest.raises(DefinitionUnknown):
        shop.job.batches_until(lambda: False, "stop")
    strict = shop.job
    lenient(shop)
    strict.restart(shop.settings)
    shop.job.batches_until(lambda: bool(shop.sent("t")), "the second reading")
    assert shop.sent("t") == [{"id": 2, "d": "c", "b": "b", "e": "x"}]


def test_rows_of_a_definition_that_does_not_fit_their_map_are_left_out(shop: Shop) -> None:
    """The table was changed with sql_log_bin = 0, so that no statement tells of it."""
    lenient(shop)
    shop.knows("t")
    shop.run("SET sql_log_bin = 0", "ALTER TABLE t MODIFY a VARCHAR(30) AFTER e", "SET sql_log_bin = 1")
    shop.insert("t", (2, "b", "x", "a"))
    assert shop.until("t", 1) == [{"id": 2, "b": "b", "e": "x", "a": "a"}]


def test_windows_of_a_table_whose_rows_are_left_out_are_read_again(shop: Shop) -> None:
    lenient(shop)
    shop.knows("t")
    shop.insert("t", *((number, "old", None, None) for number in range(50)))
    shop.until("t", 50)
    shop.job.restart()
    not_followed(shop, "CHANGE a c VARCHAR(20)")
    shop.run("UPDATE t SET c = 'new'")
    not_followed(shop, "CHANGE c d VARCHAR(20)")
    shop.job.batches_until(lambda: "COMPLETED" in [each["type"] for each in notes(shop)], "the second reading")
    newest = {each["id"]: each for each in shop.sent("t")}
    assert {each.get("d") for each in newest.values()} == {"new"}
