"""Settings: Debezium's names in, typed values out; every problem at once; secrets nowhere."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest

from incsnap.config.load import Loaded, from_properties, load, read
from incsnap.config.settings import Settings
from incsnap.errors import ConfigError
from incsnap.tables import TableId

_LEAST = {
    "database.hostname": "db",
    "database.user": "cdc",
    "topic.prefix": "shop",
    "bootstrap.servers": "k1:9092,k2:9092",
    "checkpoint.location": "/var/lib/incsnap",
    "snapshot.mode": "no_data",
    "signal.enabled.channels": "kafka",
}


def _load(**changes: str | None) -> Loaded:
    """The least settings with ``changes``; two underscores stand for a dot, None takes a name away."""
    merged: dict[str, str] = dict(_LEAST)
    for name, value in changes.items():
        dotted = name.replace("__", ".")
        if value is None:
            merged.pop(dotted, None)
        else:
            merged[dotted] = value
    return from_properties(merged, {"PASS": "s3cret", "PORT": "3307"})


def _problems(**changes: str | None) -> str:
    with pytest.raises(ConfigError) as raised:
        _load(**changes)
    return str(raised.value)


def test_the_least_settings_have_debeziums_defaults() -> None:
    loaded = _load()
    settings = loaded.settings
    assert loaded.warnings == ()
    assert (settings.mysql.port, settings.mysql.ssl_mode) == (3306, "preferred")
    assert settings.topic_delimiter == "."
    assert settings.tombstones_on_delete
    assert settings.modes.decimal_handling == "precise"
    assert settings.signals.kafka_topic == "shop-signal"
    assert settings.signals.kafka_bootstrap_servers == "k1:9092,k2:9092"
    assert settings.mysql.connect_timeout_seconds == 30.0


def test_the_server_id_stays_the_same_over_restarts_and_differs_between_jobs() -> None:
    assert _load().settings.mysql.server_id == _load().settings.mysql.server_id
    assert _load().settings.mysql.server_id != _load(topic__prefix="other").settings.mysql.server_id
    assert _load(database__server__id="7").settings.mysql.server_id == 7


def test_all_problems_are_listed_at_once_each_with_name_value_and_what_is_allowed() -> None:
    text = _problems(
        database__hostname=None,
        database__port="port",
        database__ssl__mode="perhaps",
        decimal__handling__mode="roman",
        read__only="maybe",
        bootstrap__servers="k1",
    )
    assert "6 problems" in text
    assert "database.hostname: missing" in text
    assert "database.port: 'port' is not a whole number from 1 to 65535" in text
    assert "database.ssl.mode: 'perhaps' is not one of: disabled, preferred" in text
    assert "decimal.handling.mode: 'roman' is not one of: precise, string, double" in text
    assert "read.only: 'maybe' is not true or false" in text
    assert "bootstrap.servers: 'k1' is not host:port" in text


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("topic.prefix", "a b", "made of letters"),
        ("database.port", "70000", "from 1 to 65535"),
        ("database.port", "3_306", "whole number"),
        ("snapshot.mode", "initial", "signal execute-snapshot"),
        ("snapshot.mode", "sometimes", "one of: no_data"),
        ("time.precision.mode", "connect", "possible yet; allowed now: adaptive_time_microseconds"),
        ("value.converter", "io.confluent.connect.avro.AvroConverter", "possible yet"),
        ("value.converter.schemas.enable", "true", "possible yet"),
        ("skipped.operations", "u,d", "other choices are not possible yet"),
        ("skipped.operations", "none", "t, the default"),
        ("table.include.list", "db.(t", "not a regular expression"),
        ("signal.data.collection", "signals", "of the form database.table"),
        ("signal.enabled.channels", "kafka,pigeon", "'pigeon' is not one of: source, kafka, file"),
        ("signal.kafka.topic", "a topic", "a topic name"),
        ("signal.kafka.bootstrap.servers", "k:port", "host:port"),
        ("notification.enabled.channels", "sink", "notification.sink.topic.name: missing"),
        ("incremental.snapshot.chunk.size", "0", "from 1 to"),
        ("max.batch.size", "many", "from 1 on"),
        ("topic.creation.default.partitions", "0", "from 1 on, or -1"),
        ("producer.acks", "1", "acks=all"),
        ("producer.enable.idempotence", "false", "exactly once needs"),
        ("producer.transactional.id", "mine", "not free to choose"),
        ("producer.ssl.truststore.location", "/ca.jks", "Java key stores cannot be read"),
        ("database.ssl.truststore", "/ca.jks", "a PEM file"),
        ("column.exclude.list", "db.t.secret", "cannot be left out yet"),
        ("column.mask.with.12.chars", "db.t.secret", "cannot be masked yet"),
        ("message.key.columns", "db.t:a", "other keys cannot be chosen yet"),
        ("database.password", "${env:NOPE}", "no variable NOPE"),
        ("database.password", "${vault:x:y}", "'vault' is not known"),
        ("database.password", "${file:/no/such/file:key}", "/no/such/file cannot be read"),
        ("database.password", "${file:key}", "write it as ${file:PATH:KEY}"),
    ],
)
def test_a_wrong_value_is_refused_with_a_reason(name: str, value: str, said: str) -> None:
    with pytest.raises(ConfigError) as raised:
        from_properties({**_LEAST, name: value}, {})
    assert "one problem" in str(raised.value)
    assert said in str(raised.value)


def test_include_and_exclude_of_one_kind_exclude_each_other() -> None:
    assert "only one of the two" in _problems(table__include__list="a.b", table__exclude__list="a.c")


def test_references_are_resolved_from_the_environment_and_from_files(tmp_path: Path) -> None:
    secrets = tmp_path / "secrets.properties"
    secrets.write_text("mysql.user=repl\n")
    settings = _load(
        database__password="${env:PASS}",
        database__port="${env:PORT}",
        database__user=f"${{file:{secrets}:mysql.user}}",
        checkpoint__location="/data/${env:PORT}/x",
    ).settings
    assert settings.mysql.password.get_secret_value() == "s3cret"
    assert (settings.mysql.port, settings.mysql.user) == (3307, "repl")
    assert settings.checkpoint_location == "/data/3307/x"


def test_secrets_are_in_no_repr_and_in_no_error() -> None:
    loaded = _load(database__password="${env:PASS}", producer__sasl__password="s3cret", spark__token="s3cret")
    settings = loaded.settings
    for shown in (repr(settings), str(settings), settings.model_dump_json(), repr(settings.mysql), str(settings.kafka)):
        assert "s3cret" not in shown
    assert "s3cret" not in _problems(database__port="${env:PASS}")
    assert "s3cret" not in _problems(producer__sasl__jaas__config="s3cret")


def test_settings_survive_the_way_to_a_worker_with_their_secrets() -> None:
    settings = _load(
        database__password="${env:PASS}",
        producer__sasl__password="s3cret",
        signal__data__collection="a.b",
        signal__enabled__channels="source",
        table__include__list="a.c",
    ).settings
    again = Settings.from_json(settings.to_json())
    assert again == settings == pickle.loads(pickle.dumps(settings))
    assert again.mysql.password.get_secret_value() == "s3cret"
    assert again.kafka.producer["sasl.password"] == "s3cret"
    assert again.tables.signal_table == TableId("a", "b")


def test_names_that_do_not_apply_are_listed_in_one_warning_and_never_refused() -> None:
    loaded = _load(
        connector__class="io.debezium.connector.mysql.MySqlConnector",
        tasks__max="1",
        schema__history__internal__kafka__topic="h",
        transforms__route__type="x",
        offset__storage="y",
    )
    (warning,) = loaded.warnings
    for name in ("connector.class", "tasks.max", "schema.history.internal.kafka.topic", "transforms.route.type"):
        assert name in warning


def test_an_unknown_name_close_to_one_of_ours_is_asked_about() -> None:
    (warning,) = _load(tombstone__on__delete="false", completely__else="1").warnings
    assert "tombstone.on.delete (did you mean tombstones.on.delete?)" in warning
    assert "completely.else" in warning


def test_a_misspelt_name_that_a_job_needs_is_a_problem_beside_the_missing_one() -> None:
    text = _problems(database__hostname=None, database__hostnam="db")
    assert "database.hostname: missing" in text
    assert "database.hostnam: not a setting; did you mean database.hostname?" in text


@pytest.mark.parametrize(("old", "warned"), [("schema_only", True), ("never", True), ("no_data", False)])
def test_old_names_of_the_snapshot_mode_are_taken_with_a_warning(old: str, warned: bool) -> None:
    assert any("no_data" in warning for warning in _load(snapshot__mode=old).warnings) is warned


def test_channels_that_do_not_exist_here_are_left_out_with_a_warning() -> None:
    loaded = _load(signal__enabled__channels="kafka,jmx", notification__enabled__channels="log,jmx")
    assert loaded.settings.signals.channels == ("kafka",)
    assert loaded.settings.notifications.channels == ("log",)
    assert len(loaded.warnings) == 2


def test_a_job_that_no_signal_can_reach_is_warned_about() -> None:
    assert any("No signal can reach" in warning for warning in _load(signal__enabled__channels=None).warnings)


def test_producer_settings_of_a_java_client_become_librdkafkas() -> None:
    loaded = from_properties(
        {
            **_LEAST,
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


def test_spark_settings_and_topic_settings_are_passed_on() -> None:
    settings = _load(
        spark__sql__shuffle__partitions="4",
        topic__creation__default__partitions="3",
        topic__creation__default__cleanup__policy="compact",
    ).settings
    assert settings.spark == {"spark.sql.shuffle.partitions": "4"}
    assert settings.topic_creation.partitions == 3
    assert settings.topic_creation.config == {"cleanup.policy": "compact"}


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="nowhere"):
        load(tmp_path / "nowhere.properties")
    binary = tmp_path / "binary.properties"
    binary.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ConfigError, match="UTF-8"):
        load(binary)
    broken = tmp_path / "broken.properties"
    broken.write_text("a=\\u12")
    with pytest.raises(ConfigError, match="not a properties file"):
        load(broken)


def test_a_file_is_read_as_java_reads_it(tmp_path: Path) -> None:
    file = tmp_path / "job.properties"
    lines = [f"{name} = {value}" for name, value in _LEAST.items()]
    file.write_text("\n".join(["# a job", *lines, "table.include.list=a\\\\.b,\\", "   a\\\\.c"]))
    assert read(file).settings.tables.table_include == (r"a\.b", r"a\.c")
