"""Tests of the settings that decide which rows a job reads at its start, and where its stream begins."""

from __future__ import annotations

import pytest

from incsnap.config.load import from_properties
from incsnap.config.settings import Settings
from incsnap.errors import ConfigError
from incsnap.tables import TableId
from tests.support.properties import NEEDED, dotted

_BASE = {**NEEDED, "signal.data.collection": "shop.signals"}
_OVERRIDES = "snapshot.select.statement.overrides"
_UUID = "3e11fa47-71ca-11e1-9e33-c80aa9429562"


def settings(**options: str) -> Settings:
    return from_properties({**_BASE, **dotted(options)}, {}).settings


def overridden(statement: str, table: str = "shop.orders") -> dict[str, str]:
    properties = {**_BASE, _OVERRIDES: table, f"{_OVERRIDES}.{table}": statement}
    return from_properties(properties, {}).settings.snapshot.conditions


def problem_of(properties: dict[str, str]) -> str:
    with pytest.raises(ConfigError) as raised:
        from_properties({**_BASE, **properties}, {})
    return str(raised.value)


def test_tables_of_the_start_are_chosen_by_java_regexes_in_any_letter_case() -> None:
    snapshot = settings(snapshot__include__collection__list=r"shop\.ord.*,SHOP\.customers").snapshot

    assert snapshot.included(TableId("shop", "orders"))
    assert snapshot.included(TableId("shop", "customers"))
    assert not snapshot.included(TableId("shop", "items"))
    assert settings().snapshot.included(TableId("shop", "items"))


@pytest.mark.parametrize(
    ("statement", "condition"),
    [
        ("SELECT * FROM shop.orders WHERE deleted = 0", "deleted = 0"),
        ("select *from orders where id < 0", "id < 0"),
        ("select*from orders where id < 0", "id < 0"),
        ("select *\nfrom `shop`.`orders`\nwhere deleted = 0 ;", "deleted = 0"),
        ("SELECT * FROM orders WHERE a IN (SELECT a FROM x LIMIT 3)", "a IN (SELECT a FROM x LIMIT 3)"),
        ("SELECT * FROM shop.orders WHERE n = 'ORDER BY )' OR `limit` = 1", "n = 'ORDER BY )' OR `limit` = 1"),
        ("SELECT * FROM shop.orders WHERE orders.lock_id = 1", "orders.lock_id = 1"),
        ("SELECT * FROM shop.orders WHERE v = 1 ORDER BY id", "v = 1"),
        (
            "SELECT * FROM shop.orders WHERE v = '(' AND f(a, (2)) > 1\norder  by f(id, ';'), `limit` DESC;",
            "v = '(' AND f(a, (2)) > 1",
        ),
    ],
)
def test_the_where_of_a_statement_becomes_the_condition_of_its_table(statement: str, condition: str) -> None:
    assert overridden(statement) == {"shop.orders": condition}


@pytest.mark.parametrize("order", ["", " ORDER BY id DESC", " order by id;"])
def test_a_statement_without_where_reads_all_rows(order: str) -> None:
    assert overridden(f"SELECT * FROM shop.orders{order}") == {}


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("SELECT id, v FROM shop.orders WHERE v = 1", "it is not a SELECT * of one table with a WHERE at most"),
        ("SELECT * FROM shop.orders o WHERE o.v = 1", "it is not a SELECT * of one table"),
        ("SELECT * FROM shop.orders JOIN shop.items USING (id)", "it is not a SELECT * of one table"),
        ("SELECT * FROM shop.orders ORDER BY id LIMIT 5", "it is not a SELECT * of one table"),
        ("SELECT * FROM shop.items WHERE v = 1", "it does not read shop.orders"),
        ("SELECT * FROM shop.orders WHERE v = 1 ORDER BY id LIMIT 9", "behind its WHERE stands ORDER"),
        ("SELECT * FROM shop.orders WHERE v = 1 ORDER BY id -- all", "its WHERE is not one condition: it holds a"),
        ("SELECT * FROM shop.orders WHERE v = 1 ORDER BY (id", "its WHERE is not one condition: a parenthesis"),
        ("SELECT * FROM shop.orders WHERE (v = 1) limit 10", "behind its WHERE stands LIMIT"),
        ("SELECT * FROM shop.orders WHERE v = 1 UNION SELECT * FROM shop.items", "behind its WHERE stands UNION"),
        ("SELECT * FROM shop.orders WHERE v = 1 -- all", "its WHERE is not one condition: it holds a comment"),
        ("SELECT * FROM shop.orders WHERE v = 1) OR (1 = 1", "its WHERE is not one condition: a parenthesis is closed"),
    ],
)
def test_a_statement_that_does_more_than_narrow_rows_is_refused_by_name(statement: str, message: str) -> None:
    text = problem_of({_OVERRIDES: "shop.orders", f"{_OVERRIDES}.shop.orders": statement})

    assert f"{_OVERRIDES}.shop.orders: {message}" in text
    assert "Write SELECT * FROM shop.orders WHERE <condition>" in text


def test_overrides_that_lack_their_statement_or_their_table_are_told() -> None:
    properties = {_OVERRIDES: "shop.a", f"{_OVERRIDES}.shop.b": "SELECT * FROM shop.b WHERE x"}

    warnings = from_properties({**_BASE, **properties}, {}).warnings

    assert any(f"{_OVERRIDES}.shop.a is missing: all rows of the table are read" in each for each in warnings)
    assert any(f"{_OVERRIDES}.shop.b has no effect" in each for each in warnings)


def test_a_job_begins_now_unless_a_place_is_given() -> None:
    assert not settings().start.is_given

    by_gtids = settings(incsnap__start__gtid__set=f"{_UUID.upper()}:1-5,\n{_UUID}:7").start
    by_file = settings(incsnap__start__binlog__file="binlog.000003").start
    by_time = settings(incsnap__start__at="2026-11-20T07:00:00.5+01:00").start

    assert (by_gtids.is_given, by_gtids.gtid_set) == (True, f"{_UUID}:1-5:7")
    assert (by_file.is_given, by_file.file, by_file.position) == (True, "binlog.000003", 4)
    assert (by_time.is_given, by_time.time_us) == (True, 1_795_154_400_500_000)
    assert settings(incsnap__start__at="1795154400500").start == by_time
    assert settings(incsnap__start__at="earliest").start.time_us == 0


@pytest.mark.parametrize("at", ["2026-11-20T07:00:00", "yesterday", "1795154400"])
def test_a_time_without_a_zone_or_in_seconds_is_refused(at: str) -> None:
    assert "is not earliest, a time with its zone as" in problem_of({"incsnap.start.at": at})


def test_the_mode_never_begins_with_the_oldest_binlog_unless_a_place_is_given() -> None:
    never = settings(snapshot__mode="never")

    assert (never.snapshot.mode, never.start.time_us) == ("no_data", 0)
    assert settings(snapshot__mode="never", incsnap__start__binlog__file="binlog.000003").start.time_us is None


@pytest.mark.parametrize("other", [{"incsnap.start.binlog.file": "binlog.000003"}, {"incsnap.start.at": "earliest"}])
def test_two_places_at_once_are_refused(other: dict[str, str]) -> None:
    text = problem_of({"incsnap.start.gtid.set": f"{_UUID}:1", **other})

    assert f"{next(iter(other))}: set only one of incsnap.start.gtid.set and" in text


def test_limits_of_a_throttle_are_those_that_are_given() -> None:
    snapshot = settings(
        incsnap__snapshot__throttle__replica__lag__ms="5000",
        incsnap__snapshot__throttle__threads__running="0",
        incsnap__snapshot__throttle__replicas="one:3307, two,[::1]:3308",
    ).snapshot

    assert snapshot.throttle == {"replica-lag-ms": 5_000}
    assert snapshot.throttle_replicas == (("one", 3307), ("two", 3306), ("::1", 3308))


def test_the_lag_of_no_replica_is_no_limit() -> None:
    problem = problem_of({"incsnap.snapshot.throttle.replica.lag.ms": "5000"})

    assert "incsnap.snapshot.throttle.replicas=host:port" in problem


@pytest.mark.parametrize("address", ["one:", ":3306", "one:0", "one:x", "mysql://one:3306"])
def test_a_replica_is_a_host_and_a_port(address: str) -> None:
    problem = problem_of({"incsnap.snapshot.throttle.replicas": address})

    assert "is not host:port[,host:port...]" in problem


_PARTS = "snapshot.mode.configuration.based."


def _put_together(*true: str) -> dict[str, str]:
    """Return settings of the mode `configuration_based` with these parts; others are false, as in Debezium."""
    return {"snapshot.mode": "configuration_based", **{f"{_PARTS}{part}": "true" for part in true}}


@pytest.mark.parametrize(
    ("parts", "mode"),
    [
        (("snapshot.data", "start.stream"), "always"),
        (("snapshot.schema", "snapshot.data", "start.stream"), "always"),
        (("start.stream",), "no_data"),
        (("start.stream", "snapshot.schema", "snapshot.on.schema.error"), "no_data"),
    ],
)
def test_a_mode_that_is_put_together_is_the_one_that_does_the_same(parts: tuple[str, ...], mode: str) -> None:
    loaded = from_properties({**_BASE, **_put_together(*parts)}, {})
    assert loaded.settings.snapshot.mode == mode
    assert f"snapshot.mode=configuration_based means {mode}, because of" in loaded.warnings[0]
    assert ("initial reads only once" in loaded.warnings[0]) is (mode == "always")


@pytest.mark.parametrize(
    ("parts", "instead"),
    [
        ((), "neither snapshot.mode.configuration.based.snapshot.data nor"),
        (("snapshot.schema",), "neither snapshot.mode.configuration.based.snapshot.data nor"),
        (("snapshot.data",), "set snapshot.mode=initial_only, which reads once and not at each start"),
        (
            ("snapshot.data", "start.stream", "snapshot.on.data.error"),
            "for a snapshot at each start",
        ),
        (("start.stream", "snapshot.on.data.error"), "set snapshot.mode=when_needed"),
    ],
)
def test_a_mode_that_no_other_does_is_refused_with_what_to_name(parts: tuple[str, ...], instead: str) -> None:
    problem = problem_of(_put_together(*parts))
    assert "snapshot.mode: configuration_based is no mode of incsnap with these settings. " in problem
    assert instead in problem


def test_parts_of_a_mode_have_no_effect_beside_another_one() -> None:
    loaded = from_properties({**_BASE, **_put_together("snapshot.data"), "snapshot.mode": "no_data"}, {})
    assert loaded.settings.snapshot.mode == "no_data"
    (warning,) = loaded.warnings
    assert warning.endswith(f"because snapshot.mode is not configuration_based: {_PARTS}snapshot.data")


def test_a_gap_is_closed_by_a_snapshot_unless_the_settings_say_otherwise() -> None:
    assert settings(snapshot__mode="when_needed").snapshot.gap_recovery == "snapshot"
    assert settings(incsnap__gap__recovery="differences", snapshot__mode="when_needed").snapshot.gap_recovery == (
        "differences"
    )


def test_a_job_without_rows_begins_again_and_compares_nothing() -> None:
    snapshot = settings(incsnap__gap__recovery="differences", snapshot__mode="when_needed_no_data").snapshot

    assert (snapshot.begins_again, snapshot.reads_at_start, snapshot.compares_behind_a_gap) == (True, False, False)


def test_the_repair_of_gaps_needs_a_mode_that_begins_again() -> None:
    given = {**_BASE, "incsnap.gap.recovery": "differences"}

    assert "incsnap.gap.recovery has no effect, because snapshot.mode is not when_needed" in (
        from_properties(given, {}).warnings
    )
    assert not any("gap" in each for each in from_properties({**given, "snapshot.mode": "when_needed"}, {}).warnings)
