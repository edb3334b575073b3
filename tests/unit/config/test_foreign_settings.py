"""Settings that are not ours, or have other names here: taken with a warning, or passed on to Kafka and Spark."""

from __future__ import annotations

import pytest

from incsnap.config.corrections import corrections
from incsnap.config.load import from_properties
from incsnap.errors import ConfigError
from tests.support.job_settings import LEAST, loaded_with, problems_with


def test_names_that_do_not_apply_are_listed_in_one_warning_and_never_refused() -> None:
    loaded = loaded_with(
        connector__class="io.debezium.connector.mysql.MySqlConnector",
        tasks__max="1",
        schema__history__internal__kafka__topic="h",
        offset__storage="y",
        key__converter="JsonConverter",
        value__converter="JsonConverter",
        extended__headers__enabled="false",
    )
    (warning,) = loaded.warnings
    for name in ("connector.class", "tasks.max", "schema.history.internal.kafka.topic", "offset.storage"):
        assert name in warning


def test_an_unknown_name_close_to_one_of_ours_is_asked_about() -> None:
    (warning,) = loaded_with(tombstone__on__delete="false", completely__else="1").warnings
    assert "tombstone.on.delete (did you mean tombstones.on.delete?)" in warning
    assert "completely.else" in warning


@pytest.mark.parametrize("name", ["_table.include.list", "#table.include.list", "comment_table.include.list"])
def test_a_setting_that_is_switched_off_by_its_name_is_unknown_and_stays_off(name: str) -> None:
    loaded = from_properties({**LEAST, name: "shop.orders"}, {})
    assert any(warning.endswith(f"{name} (unknown)") for warning in loaded.warnings)
    assert loaded.settings.tables.table_include == ()
    assert corrections({name: "shop.orders"}, {}) == ()


def test_a_misspelt_name_that_a_job_needs_is_a_problem_beside_the_missing_one() -> None:
    text = problems_with(database__hostname=None, database__hostnam="db")
    assert "database.hostname: missing" in text
    assert "database.hostnam: unknown setting; did you mean database.hostname?" in text


@pytest.mark.parametrize(
    ("misspelt", "meant"),
    [
        ("database.include", "database.include.list"),
        ("database.exclude", "database.exclude.list"),
        ("table.include", "table.include.list"),
        ("table.exclude.lists", "table.exclude.list"),
        ("column.exclude", "column.exclude.list"),
        ("table.whiteList", "table.include.list"),
        ("tables.whitelist", "table.include.list"),
        ("database.whitelists", "database.include.list"),
        ("database.blacklists", "database.exclude.list"),
        ("database.black.list", "database.exclude.list"),
        ("database.white.list", "database.include.list"),
        ("column_blacklist", "column.exclude.list"),
    ],
)
def test_a_misspelt_name_of_a_list_of_what_is_captured_stops_the_start(misspelt: str, meant: str) -> None:
    assert f"{misspelt}: unknown setting; did you mean {meant}? Without it" in problems_with(
        **{misspelt.replace(".", "__"): "inventory", "database__include__list": None, "table__include__list": None}
    )
    (change,) = corrections({misspelt: "inventory"}, {})
    assert (change.old, change.new) == (misspelt, meant)
    assert "It is misspelt: Debezium ignores it." in change.reason


@pytest.mark.parametrize(
    "name",
    [
        "column.masks.with.12.chars",
        "column.mask",
        "Column_Mask_With_3_Chars",
        "columns.mask.hash.SHA-256.with.salt.Pepper",
        "column.maks.with.5.chars",
        "colum.mask.with.many.chars",
        "mask.column.with.5.chars",
        "column-mask-with-5-chars",
        "column.hash.SHA-256.with.salt.Pepper",
        "column_mask_hash_SHA-256_with_salt_Pepper",
        "Column.mask.hash.SHA-256.with.Salt.Pepper",
    ],
)
def test_a_misspelt_name_of_a_mask_stops_the_start(name: str) -> None:
    """The values would be sent as they are."""
    with pytest.raises(ConfigError) as refused:
        from_properties({**LEAST, name: "shop.users.password"}, {})
    assert "unknown setting; did you mean column.mask.*? Without it, values would be sent" in refused.value.message
    assert "Pepper" not in refused.value.message
    assert not corrections({name: "shop.users.password"}, {})


@pytest.mark.parametrize("name", ["columns.truncated.to.5.chars", "colum.truncate.to.5", "cut.to.5.chars"])
def test_a_misspelt_name_of_a_cut_stops_the_start(name: str) -> None:
    with pytest.raises(ConfigError, match=r"did you mean column\.truncate\.\*\?"):
        from_properties({**LEAST, name: "shop.users.password"}, {})


@pytest.mark.parametrize(
    "name",
    [
        "column.type",
        "column.names",
        "columns.max.length",
        "#column.masks.with.salt.Pepper",
        "internal.with.salt.Pepper",
    ],
)
def test_another_unknown_name_stops_nothing_and_shows_no_salt(name: str) -> None:
    warnings = str(from_properties({**LEAST, name: "shop.users.password"}, {}).warnings)
    assert name.partition(".")[0] in warnings
    assert "Pepper" not in warnings


@pytest.mark.parametrize(
    ("name", "value", "more"),
    [
        ("snapshot.query.mode", "select_all", {}),
        ("extended.headers.enabled", "false", {}),
        ("topic.creation.enable", "true", {}),
        ("guardrail.collections.limit.action", "warn", {"guardrail.collections.max": "10"}),
        ("guardrail.collections.limit.action", "fail", {}),
    ],
)
def test_a_setting_that_asks_for_what_is_done_anyway_stops_nothing(name: str, value: str, more: dict[str, str]) -> None:
    from_properties({**LEAST, **more, name: value}, {})


@pytest.mark.parametrize(
    ("quoted", "password"),
    [
        (r"a\"b", 'a"b'),
        (r"a\\b", "a\\b"),
        (r"\101\t\q\47x\477", "A\tq'x'7"),
    ],
)
def test_escapes_in_a_login_are_read_as_java_reads_them(quoted: str, password: str) -> None:
    login = f'org.X required username="u" password="{quoted}";'
    loaded = from_properties({**LEAST, "producer.sasl.jaas.config": login}, {})
    assert loaded.settings.kafka.producer["sasl.password"] == password


@pytest.mark.parametrize(("old", "mode"), [("schema_only", "no_data"), ("schema_only_recovery", "recovery")])
def test_old_names_of_the_snapshot_mode_are_taken_with_a_warning(old: str, mode: str) -> None:
    loaded = loaded_with(snapshot__mode=old)
    assert loaded.settings.snapshot.mode == mode
    assert f"snapshot.mode={old} is an old name of {mode}" in loaded.warnings


def test_recovery_is_told_to_have_nothing_to_recover() -> None:
    (warning,) = loaded_with(snapshot__mode="recovery").warnings
    assert "rebuilds Debezium's schema history. incsnap has no schema history" in warning


@pytest.mark.parametrize("mode", ["initial", "initial_only", "when_needed", "always", "no_data"])
def test_a_snapshot_mode_of_debezium_is_taken_as_it_is(mode: str) -> None:
    loaded = loaded_with(snapshot__mode=mode)
    assert (loaded.settings.snapshot.mode, loaded.warnings) == (mode, ())
    assert loaded.settings.snapshot.reads_at_start is (mode != "no_data")


def test_a_job_begins_with_a_snapshot_of_all_tables_where_nothing_else_is_asked_for() -> None:
    loaded = loaded_with(snapshot__mode=None)
    assert (loaded.settings.snapshot.mode, loaded.warnings) == ("initial", ())


def test_channels_that_do_not_exist_here_are_left_out_with_a_warning() -> None:
    loaded = loaded_with(signal__enabled__channels="kafka,jmx", notification__enabled__channels="log,jmx")
    assert loaded.settings.signals.channels == ("kafka",)
    assert loaded.settings.notifications.channels == ("log",)
    assert len(loaded.warnings) == 2


def test_a_job_that_no_signal_can_reach_is_warned_about() -> None:
    assert any("No signal can reach" in warning for warning in loaded_with(signal__enabled__channels=None).warnings)


def test_producer_settings_of_a_java_client_become_librdkafkas() -> None:
    loaded = from_properties(
        {
            **LEAST,
            "producer.override.linger.ms": "7",
            "producer.max.request.size": "5",
            "producer.key.serializer": "x",
            "producer.sasl.jaas.config": 'org.X required username="u" password="p\'q";',
            "producer.ssl.truststore.location": "/ca.pem",
        },
        {},
    )
    assert loaded.settings.kafka.producer == {
        "linger.ms": "7",
        "message.max.bytes": "5",
        "sasl.username": "u",
        "sasl.password": "p'q",
        "ssl.ca.location": "/ca.pem",
    }
    assert "producer.key.serializer" in loaded.warnings[0]


def test_a_producers_own_brokers_are_never_overlooked() -> None:
    own = {"producer.override.bootstrap.servers": "other:9092"}
    with pytest.raises(ConfigError, match="Kafka Connect sends records to these brokers"):
        from_properties({**LEAST, **own}, {})
    assert from_properties({**LEAST, **own, "bootstrap.servers": "other:9092"}, {}).settings.kafka.producer == {}


def test_spark_settings_and_topic_settings_are_passed_on() -> None:
    settings = loaded_with(
        spark__sql__shuffle__partitions="4",
        topic__creation__default__partitions="3",
        topic__creation__default__cleanup__policy="compact",
    ).settings
    assert settings.spark == {"spark.sql.shuffle.partitions": "4"}
    assert settings.topic_creation.default.partitions == 3
    assert settings.topic_creation.default.config == {"cleanup.policy": "compact"}


def test_a_topic_is_made_as_the_first_group_says_that_takes_it() -> None:
    loaded = loaded_with(
        topic__creation__groups="big,logs",
        topic__creation__default__replication__factor="2",
        topic__creation__big__include=r".*\.orders,.*\.lines",
        topic__creation__big__exclude=r"test\..*",
        topic__creation__big__partitions="12",
        topic__creation__logs__include=".*",
        topic__creation__logs__replication__factor="1",
        topic__creation__logs__retention__ms="1000",
        topic__creation__other__partitions="3",
    )
    creation = loaded.settings.topic_creation
    groups = {topic: creation.group_of(topic) for topic in ("shop.db.orders", "test.db.orders", "shop.db.Orders")}
    assert {topic: group.name for topic, group in groups.items()} == {
        "shop.db.orders": "big",
        "test.db.orders": "logs",
        "shop.db.Orders": "logs",
    }
    assert (groups["shop.db.orders"].partitions, groups["shop.db.orders"].replication_factor) == (12, 2)
    assert groups["test.db.orders"].config == {"retention.ms": "1000"}
    assert any("topic.creation.other.partitions" in warning for warning in loaded.warnings)


def test_a_group_of_topics_without_include_takes_none_as_in_kafka_connect() -> None:
    loaded = loaded_with(topic__creation__groups="big", topic__creation__big__partitions="12")

    assert loaded.settings.topic_creation.group_of("shop.db.orders").name == "default"
    assert any("topic.creation.big.include is not set" in warning for warning in loaded.warnings)


def test_settings_of_avro_beside_json_are_warned_about() -> None:
    (warning,) = loaded_with(value__converter__schema__registry__url="http://r:8081").warnings

    assert "value.converter.schema.registry.url" in warning
