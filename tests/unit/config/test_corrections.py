"""`incsnap config --fix`: files of older releases of Debezium become files that start, in their own form."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from incsnap.cli.main import commands
from incsnap.config.corrections import corrections
from incsnap.config.documents import read_document
from incsnap.config.load import correct, read
from incsnap.config.older_names import FIRST_DEFAULTS, tombstone_handling
from incsnap.errors import ConfigError

#: A connector's file of Debezium 1, as its tutorial has it.
OLD = {
    "name": "inventory",
    "connector.class": "io.debezium.connector.mysql.MySqlConnector",
    "database.hostname": "db",
    "database.user": "cdc",
    "database.password": "s3cret",
    "database.server.name": "shop",
    "database.whitelist": "inventory",
    "table.whitelist": "orders,inventory.lines",
    "database.history": "io.debezium.relational.history.KafkaDatabaseHistory",
    "database.history.kafka.bootstrap.servers": "k:9092",
    "database.history.kafka.topic": "history",
    "snapshot.mode": "schema_only",
    "transforms": "unwrap",
    "transforms.unwrap.type": "io.debezium.transforms.UnwrapFromEnvelope",
    "transforms.unwrap.drop.tombstones": "false",
    "transforms.unwrap.delete.handling.mode": "rewrite",
}
#: The same with the present names.
NEW = {
    "name": "inventory",
    "connector.class": "io.debezium.connector.mysql.MySqlConnector",
    "database.hostname": "db",
    "database.user": "cdc",
    "database.password": "s3cret",
    "topic.prefix": "shop",
    "database.include.list": "inventory",
    "table.include.list": "inventory.orders,inventory.lines",
    "schema.history.internal": "io.debezium.storage.kafka.history.KafkaSchemaHistory",
    "schema.history.internal.kafka.bootstrap.servers": "k:9092",
    "schema.history.internal.kafka.topic": "history",
    "snapshot.mode": "no_data",
    "transforms": "unwrap",
    "transforms.unwrap.type": "io.debezium.transforms.ExtractNewRecordState",
    "transforms.unwrap.delete.tombstone.handling.mode": "rewrite-with-tombstone",
    "bootstrap.servers": "k:9092",
    **FIRST_DEFAULTS,
}
_OUTSIDE = ("name", "connector.class")
_INSIDE = {name: value for name, value in OLD.items() if name not in _OUTSIDE}
_REST = {"name": "inventory", "config": {name: value for name, value in OLD.items() if name != "name"}}
_MSK = {"connectorName": "inventory", "capacity": {"mcuCount": 1}, "connectorConfiguration": _REST["config"]}
_LINES = "".join(f"    {name}: {value}  # {name}\n" for name, value in _INSIDE.items())


def _resource(kind: str, holder: str) -> str:
    return (
        f"# the connector\napiVersion: v1\nkind: {kind}\nmetadata: {{name: inventory}}\nspec:\n"
        f"  class: {OLD['connector.class']}\n  {holder}:\n{_LINES}"
    )


FORMS = {
    "properties": "# ours\n" + "".join(f"{name} = {value}\n" for name, value in OLD.items()),
    "POST /connectors": json.dumps(_REST, indent=4),
    "PUT /connectors/NAME/config": json.dumps(OLD),
    "GET /connectors?expand=info": json.dumps({"inventory": {"info": _REST}}),
    "MSK Connect": json.dumps(_MSK, indent=2),
    "Strimzi": "kind: ConfigMap\n---\n" + _resource("KafkaConnector", "config"),
    "Confluent for Kubernetes": _resource("Connector", "configs"),
    "YAML in braces": f"kind: KafkaConnector\nmetadata: {{name: inventory}}\n"
    f"spec: {{class: {OLD['connector.class']}, config: {json.dumps(_INSIDE)}}}\n",
}


def test_a_reference_of_an_unknown_provider_stops_the_start_but_no_correction(tmp_path: Path) -> None:
    old, new = tmp_path / "old", tmp_path / "new"
    old.write_text(json.dumps({**OLD, "database.password": "${secrets:shop/mysql:password}"}))
    result = _run(old)
    new.write_text(result.stdout)
    hint = "${secrets:shop/mysql:password}: the provider 'secrets' is not known"

    assert result.exit_code == 0
    assert "A job cannot start with the corrected file yet" in result.stderr
    assert hint in result.stderr
    with pytest.raises(ConfigError, match=re.escape(hint)):
        read(new)


def _run(file: Path, *options: str) -> Result:
    return CliRunner().invoke(commands, ["config", "--fix", str(file), *options])


@pytest.mark.parametrize("form", FORMS)
def test_a_file_of_debezium_1_becomes_one_of_the_same_kind_that_starts(form: str, tmp_path: Path) -> None:
    old, new = tmp_path / "old", tmp_path / "new"
    old.write_text(FORMS[form])
    result = _run(old)
    new.write_text(result.stdout)

    assert result.exit_code == 0
    assert read_document(new) == NEW
    assert "cannot start" not in result.stderr
    settings = read(new).settings
    assert (settings.topic_prefix, settings.snapshot.mode) == ("shop", "no_data")
    for name in ("database.server.name", "transforms.unwrap.drop.tombstones", "bootstrap.servers=k:9092"):
        assert f"changed: {name}" in result.stderr


def _with_placeholders(form: str) -> str:
    """Return the document `form` with placeholders in the fields beside its settings."""
    if form == "MSK Connect":
        cluster = {"apacheKafkaCluster": {"bootstrapServers": "${BROKERS}"}}
        return json.dumps({**_MSK, "connectorName": "${X}", "kafkaCluster": cluster}, indent=2)
    text = FORMS[form].replace("name: inventory", "name: '${X}'").replace('"name": "inventory"', '"name": "${X}-a"')
    return text.replace("{class:", "{tasksMax: '${TASKS}', class:").replace("  class:", "  taskMax: ${TASKS}\n  class:")


@pytest.mark.parametrize("form", [form for form in FORMS if "${X}" in _with_placeholders(form)])
def test_a_placeholder_beside_the_settings_of_a_document_stops_no_correction(
    form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = _with_placeholders(form)
    (tmp_path / "old").write_text(text)
    monkeypatch.setenv("BROKERS", "k:9092")
    monkeypatch.setenv("X", "x")
    result = _run(tmp_path / "old")
    (tmp_path / "new").write_text(result.stdout)

    assert result.exit_code == 0
    assert "${TASKS}" not in text or "${TASKS}" in result.stdout
    assert "tasks.max" not in result.stderr
    of_file = form == "PUT /connectors/NAME/config"  # its name is a setting among the others
    assert ("changed: name" in result.stderr) == of_file
    assert ("${X}" in result.stdout) != of_file
    assert ("changed: bootstrap.servers=${env:BROKERS}: added" in result.stderr) == (form == "MSK Connect")
    settings = read(tmp_path / "new").settings
    assert (settings.topic_prefix, settings.kafka.bootstrap_servers) == ("shop", "k:9092")


def test_a_document_without_settings_is_to_be_corrected_by_hand(tmp_path: Path) -> None:
    for text in (
        "kind: KafkaConnector\nspec: {class: '${X}'}\n",
        '{"kind": "KafkaConnector", "spec": {"class": "${X}"}}',
    ):
        (tmp_path / "old").write_text(text)
        result = _run(tmp_path / "old")
        assert (result.exit_code, result.stdout) == (2, "")
        assert "has no object with settings" in result.stderr


def test_properties_with_colons_stay_properties(tmp_path: Path) -> None:
    start = "connector.class: c\ndatabase.password: a: b\n"
    (tmp_path / "old.properties").write_text(f"{start}database.server.name: shop\n")
    added = "".join(f"{name}={value}\n" for name, value in FIRST_DEFAULTS.items())
    assert correct(tmp_path / "old.properties").text == f"{start}topic.prefix: shop\n{added}"


def test_comments_order_and_unchanged_lines_stay(tmp_path: Path) -> None:
    for form in ("properties", "Strimzi"):
        (tmp_path / "old").write_text(FORMS[form])
        text = correct(tmp_path / "old").text
        before, after = FORMS[form].splitlines(), text.splitlines()
        kept = [line for line in before if line in after]
        assert [line for line in after if line in before] == kept
        assert len(kept) >= 6
        assert all(line in after for line in before if line.startswith("#"))
    assert "    topic.prefix: shop  # database.server.name" in text


@pytest.mark.parametrize(
    "text",
    [
        '{"name":"x",  "config":{"database.hostname":"db"}}',
        "kind: KafkaConnector\nspec: {class: c}\n",
        "# ours\r\ndatabase.hostname = db\r\n",
    ],
)
def test_a_file_without_older_names_is_printed_as_it_is(text: str, tmp_path: Path) -> None:
    (tmp_path / "job").write_bytes(text.encode())
    result = _run(tmp_path / "job")
    assert result.stdout.replace("\r", "") == text.replace("\r", "")
    assert "No setting of this file has a newer name" in result.stderr


@pytest.mark.parametrize(
    ("drops", "handling", "meant"),
    [
        ("", "", "drop"),
        ("true", "drop", "drop"),
        ("false", "", "delete-to-tombstone"),
        ("false", "drop", "delete-to-tombstone"),
        ("true", "rewrite", "rewrite"),
        ("", "rewrite", "rewrite"),
        ("false", "rewrite", "rewrite-with-tombstone"),
        ("true", "none", "tombstone"),
        ("FALSE", "none", "delete-to-tombstone"),
        ("no", "rewrite", None),
        ("true", "keep", None),
    ],
)
def test_two_old_options_of_tombstones_become_the_one_value_that_means_the_same(
    drops: str, handling: str, meant: str | None
) -> None:
    """Compare with `LegacyDeleteHandlingStrategy` of Debezium 2.

    `drop` dropped the deletion, and `drop.tombstones=false` passed the tombstone behind it: a record without value and
    schema. `none` made a null that has a schema, and JsonConverter writes the text null of it. In Debezium 3.6.1
    `delete-to-tombstone` makes the first record, and `tombstone` makes the second one. The golden files
    `unwrap-delete-to-tombstone` and `unwrap` show both: `"value":null` and `"value":{"json":null}`.
    """
    assert tombstone_handling({"drop.tombstones": drops, "delete.handling.mode": handling}) == meant


@pytest.mark.parametrize(
    ("options", "meant"),
    [
        ({"drop.deletes": "false"}, "tombstone"),
        ({"drop.deletes": " True"}, "drop"),
        ({"drop.deletes": "false", "drop.tombstones": "false"}, "delete-to-tombstone"),
        ({"drop.deletes": "false", "delete.handling.mode": "rewrite"}, "rewrite"),
        ({"drop.deletes": "no"}, None),
    ],
)
def test_drop_deletes_of_debezium_0_is_read_where_the_later_option_is_missing(
    options: dict[str, str], meant: str | None
) -> None:
    """`UnwrapFromEnvelope` read `drop.deletes=false` as `delete.handling.mode=none`, and `true` as `drop`."""
    assert tombstone_handling(options) == meant
    start = "transforms.u."
    given = {f"{start}type": "io.debezium.transforms.UnwrapFromEnvelope"}
    given |= {f"{start}{name}": value for name, value in options.items()}
    changes = corrections({"transforms": "u", **given}, {})
    assert [each.value for each in changes if each.new == f"{start}delete.tombstone.handling.mode"] == [meant][
        : bool(meant)
    ]
    left = {*given} - {each.old for each in changes}
    assert left == ({f"{start}drop.deletes"} if meant is None else set())


@pytest.mark.parametrize(
    ("options", "mode", "difference"),
    [
        ({"drop.tombstones": "false"}, "delete-to-tombstone", "the value tombstone would write the text null"),
        ({"delete.handling.mode": "none"}, "tombstone", "JsonConverter writes the text null, which is no tombstone"),
        ({"delete.handling.mode": "rewrite"}, "rewrite", ""),
        ({"drop.deletes": "false"}, "tombstone", "JsonConverter writes the text null, which is no tombstone"),
        ({"drop.deletes": "true"}, "drop", ""),
    ],
)
def test_the_reason_tells_a_tombstone_from_the_text_null(options: dict[str, str], mode: str, difference: str) -> None:
    start = "transforms.u."
    given = {f"{start}{name}": value for name, value in options.items()}
    (change,) = corrections({"transforms": "u", f"{start}type": "ExtractNewRecordState", **given}, {})
    assert (change.new, change.value) == (f"{start}delete.tombstone.handling.mode", mode)
    assert difference in change.reason
    assert ("null" in change.reason) == bool(difference)


_BUFFERS, _BYTES = (f"io.debezium.converters.{name}Converter" for name in ("ByteBuffer", "BinaryData"))
_JSON = "org.apache.kafka.connect.json.JsonConverter"


@pytest.mark.parametrize(
    ("given", "becomes"),
    [
        ({"database.password": "${DB_PASSWORD}"}, {"database.password": "${env:DB_PASSWORD}"}),
        ({"database.server.name": "${P}"}, {"topic.prefix": "${env:P}", **FIRST_DEFAULTS}),
        ({"transforms.r.replacement": "${group}"}, {}),
        ({"database.server.name": "old", "topic.prefix": "new"}, {}),
        ({"heartbeat.topics.prefix": "beat"}, {"topic.heartbeat.prefix": "beat"}),
        ({"table.include.list": "users", "database.include.list": "a,b"}, {}),
        ({"table.include.list": "users,.*x"}, {}),
        (
            {"snapshot.include.collection.list": "users", "database.include.list": "a"},
            {"snapshot.include.collection.list": "a.users"},
        ),
        ({"database.include": "a"}, {"database.include.list": "a"}),
        (
            {"database.include": "a", "table.whitelist": "t"},
            {"database.include.list": "a", "table.include.list": "a.t"},
        ),
        ({"database.include": "a", "database.include.list": "b"}, {}),
        ({"table.include": "a.b", "table.whitelist": "c.d"}, {"table.include.list": "c.d"}),
        ({"table.whitelist": "c.d", "table.include": "a.b"}, {"table.include.list": "c.d"}),
        ({"table.include": "a.b", "table.includes": "c.d"}, {"table.include.list": "a.b"}),
        (
            {
                "transforms": "o",
                "transforms.o.type": "EventRouter",
                "transforms.o.table.field.payload.id": "k",
                "transforms.o.table.field.event.payload.id": "l",
            },
            {"transforms.o.table.field.event.key": "k"},
        ),
        (
            {
                "database.history.store.only.monitored.tables.ddl": "true",
                "database.history.store.only.captured.tables.ddl": "false",
            },
            {"schema.history.internal.store.only.captured.tables.ddl": "true"},
        ),
        ({"tombstone.on.delete": "false"}, {}),
        (
            {"value.converter": _BUFFERS, "value.converter.delegate.converter.type": _JSON, "key.converter": _BUFFERS},
            {"value.converter": _BYTES, "key.converter": _BYTES},
        ),
        ({"database.server.id": "4294967297"}, {"database.server.id": "1"}),
        ({"database.server.id": "4294967296"}, {}),
        ({"database.server.id": "4294967295"}, {}),
        (
            {"producer.override.bootstrap.servers": "o:9092", "database.history.kafka.bootstrap.servers": "h:9092"},
            {"bootstrap.servers": "o:9092", "schema.history.internal.kafka.bootstrap.servers": "h:9092"},
        ),
        ({"producer.override.bootstrap.servers": "o:9092", "bootstrap.servers": "k:9092"}, {}),
        (
            {"transforms": "u", "transforms.u.type": "ExtractNewRecordState", "transforms.u.operation.header": "true"},
            {"transforms.u.add.headers": "op"},
        ),
        (
            {
                "transforms": "u",
                "transforms.u.type": "io.debezium.transforms.UnwrapFromEnvelope",
                "transforms.u.add.source.fields": "ts_ms, db",
            },
            {
                "transforms.u.type": "io.debezium.transforms.ExtractNewRecordState",
                "transforms.u.add.fields": "source.ts_ms:ts_ms,source.db:db",
                "transforms.u.delete.tombstone.handling.mode": "drop",
            },
        ),
        (
            {"transforms": "o", "transforms.o.type": "EventRouter", "transforms.o.table.field.payload.id": "k"},
            {"transforms.o.table.field.event.key": "k"},
        ),
        (
            {"transforms": "o", "transforms.o.type": "EventRouter", "transforms.o.table.field.event.payload.id": "k"},
            {"transforms.o.table.field.event.key": "k"},
        ),
        (
            {
                "transforms": "o",
                "transforms.o.type": "EventRouter",
                "transforms.o.table.field.event.payload.id": "k",
                "transforms.o.table.field.event.key": "l",
            },
            {},
        ),
    ],
)
def test_only_what_has_a_newer_form_is_changed(given: dict[str, str], becomes: dict[str, str]) -> None:
    changes = corrections(given, {})
    changed = {each.new: given[each.old] if each.value is None else each.value for each in changes if each.new}
    assert changed == becomes


@pytest.mark.parametrize(
    ("given", "added"),
    [
        ({"database.server.name": "shop-1"}, FIRST_DEFAULTS),
        ({"database.server.name": "s", "skipped.operations": "t"}, {"schema.name.adjustment.mode": "avro"}),
        ({"database.server.name": "s", "schema.name.adjustment.mode": " "}, FIRST_DEFAULTS),
        ({"database.server.name": "shop-1", "topic.prefix": "shop-1"}, {}),
        ({"topic.prefix": "shop-1", "table.whitelist": "a.b"}, {}),
    ],
)
def test_the_defaults_of_debezium_1_are_written_out(given: dict[str, str], added: dict[str, str]) -> None:
    changes = [each for each in corrections(given, {}) if each.new in FIRST_DEFAULTS]
    assert {each.new: each.value for each in changes} == added


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", FIRST_DEFAULTS)
def test_an_empty_default_of_debezium_1_is_filled_in(form: str, name: str, tmp_path: Path) -> None:
    empty = "" if form == "properties" else '""'
    old = FORMS[form].replace("snapshot.mode", name).replace('"schema_only"', '""').replace("schema_only", empty)
    (tmp_path / "old").write_text(old)
    (tmp_path / "new").write_text(correct(tmp_path / "old").text)
    corrected = read_document(tmp_path / "new")
    assert {each: corrected[each] for each in FIRST_DEFAULTS} == FIRST_DEFAULTS
    assert (tmp_path / "new").read_text().count(name) == old.count(name)


@pytest.mark.parametrize(
    ("drops", "handling", "mode"),
    [
        ("false", "drop", "drop"),
        ("false", "rewrite", "rewrite"),
        ("false", "none", "tombstone"),
        ("true", "none", "tombstone"),
    ],
)
def test_no_tombstone_is_sent_where_the_connector_writes_none(drops: str, handling: str, mode: str) -> None:
    given = {
        "tombstones.on.delete": "false",
        "transforms": "u",
        "transforms.u.type": "ExtractNewRecordState",
        "transforms.u.drop.tombstones": drops,
        "transforms.u.delete.handling.mode": handling,
    }
    modes = [each.value for each in corrections(given, {}) if each.new.endswith("delete.tombstone.handling.mode")]
    assert modes == [mode]


@pytest.mark.parametrize(
    ("others", "added"),
    [
        ({"database.server.name": "shop"}, True),
        ({"database.history.kafka.topic": "history"}, True),
        ({"table.whitelist": "a.b"}, True),
        ({"transforms.u.type": "io.debezium.transforms.UnwrapFromEnvelope"}, True),
        ({"topic.prefix": "shop"}, False),
        ({"topic.prefix": "shop", "database.server.name": "shop"}, False),
        ({"topic.prefix": "shop", "database.history.skip.unparseable.ddl": "true"}, False),
        ({"database.server.name": "shop", "transforms.u.type": "RegexRouter"}, False),
        ({"database.server.name": "shop", "transforms.u.drop.tombstones": "false"}, False),
        ({"database.server.name": "shop", "transforms.u.delete.tombstone.handling.mode": "tombstone"}, False),
    ],
)
def test_an_unwrap_of_debezium_1_still_drops_deletions(others: dict[str, str], added: bool) -> None:
    given = {"transforms": "u", "transforms.u.type": "io.debezium.transforms.ExtractNewRecordState", **others}
    lines = [str(each) for each in corrections(given, {}) if not each.old and each.new not in FIRST_DEFAULTS]
    reason = "added. Debezium 1 sent no record of a deletion by default. Debezium 3 sends a null."
    assert lines == ([f"transforms.u.delete.tombstone.handling.mode=drop: {reason}"] if added else [])


def test_the_brokers_come_from_the_worker_where_there_is_one() -> None:
    (history,) = (name for name in OLD if name.endswith("bootstrap.servers"))
    assert [each.new for each in corrections({history: "k:9092"}, {})][-1] == "bootstrap.servers"
    assert len(corrections({history: "k:9092"}, {"bootstrap.servers": "w:9092"})) == 1


def test_the_login_to_kafka_comes_from_the_schema_history_where_no_worker_is_named() -> None:
    history = "database.history.producer."
    given = {
        "database.history.kafka.bootstrap.servers": "k:9092",
        f"{history}security.protocol": "SASL_SSL",
        f"{history}sasl.mechanism": "SCRAM-SHA-512",
        f"{history}linger.ms": "5",
        "producer.override.sasl.mechanism": "PLAIN",
    }

    def added(values: dict[str, str], inherited: dict[str, str]) -> dict[str, str | None]:
        return {each.new: each.value for each in corrections(values, inherited) if not each.old}

    assert added(given, {}) == {"bootstrap.servers": "k:9092", "producer.security.protocol": "SASL_SSL"}
    assert added(given, {"bootstrap.servers": "k:9092"}) == {}
    assert added({**given, "bootstrap.servers": "other:9092"}, {}) == {}


@pytest.mark.parametrize(
    ("changed", "inherited", "copied"),
    [
        ({}, {}, True),
        ({}, {"bootstrap.servers": "k:9092"}, True),
        ({"signal.enabled.channels": "source, kafka"}, {}, True),
        ({"signal.kafka.bootstrap.servers": "k:9092", "bootstrap.servers": "other:9092"}, {}, True),
        ({"signal.consumer.fetch.max.bytes": "9"}, {}, True),
        ({"signal.enabled.channels": "source,file"}, {}, False),
        ({"signal.enabled.channels": ""}, {}, False),
        ({"signal.consumer.sasl.mechanism": "PLAIN"}, {}, False),
        ({"signal.kafka.bootstrap.servers": "other:9092"}, {}, False),
        ({"bootstrap.servers": "other:9092"}, {}, False),
        ({}, {"bootstrap.servers": "other:9092"}, False),
    ],
)
def test_the_login_of_the_signal_topic_comes_from_the_schema_history_too(
    changed: dict[str, str], inherited: dict[str, str], copied: bool
) -> None:
    history = "schema.history.internal."
    given = {
        f"{history}kafka.bootstrap.servers": "k:9092",
        f"{history}producer.security.protocol": "SASL_SSL",
        f"{history}producer.sasl.jaas.config": "s3cret",
        f"{history}producer.linger.ms": "5",
        "signal.enabled.channels": "kafka",
        **changed,
    }
    added = [each for each in corrections(given, inherited) if each.new.startswith("signal.")]
    login = {"signal.consumer.security.protocol": "SASL_SSL", "signal.consumer.sasl.jaas.config": "s3cret"}
    assert {each.new: each.value for each in added} == (login if copied else {})
    assert not any("s3cret" in str(each) for each in added)


def test_a_change_of_a_secret_is_listed_without_its_value(tmp_path: Path) -> None:
    file = tmp_path / "job.properties"
    file.write_text("database.password=hunter2${X}\n")
    result = _run(file)
    assert "hunter2${env:X}" in result.stdout
    assert "hunter2" not in result.stderr


def test_what_remains_to_be_done_is_said(tmp_path: Path) -> None:
    file = tmp_path / "job.json"
    file.write_text(json.dumps({**OLD, "post.processors": "p"}))
    result = _run(file)
    assert result.exit_code == 2
    assert "post.processors: not supported" in result.stderr


def test_a_setting_behind_a_merge_key_is_to_be_corrected_by_hand(tmp_path: Path) -> None:
    file = tmp_path / "job.yaml"
    file.write_text(
        "kind: KafkaConnector\nx: &x {database.server.name: shop}\nspec: {class: c, config: {<<: *x, a: b}}\n"
    )
    result = _run(file)
    assert result.exit_code == 2
    assert "database.server.name cannot be replaced" in result.output


_FIRST_LINES = "".join(f'    {name}: "{value}"\n' for name, value in FIRST_DEFAULTS.items())


def _yaml(*lines: str) -> str:
    """Return a resource whose settings are `lines`, with more in front of them and behind them."""
    settings = ("# ours", *lines, "database.user: cdc", "max.batch.size: 5 # rows")
    start = f"kind: KafkaConnector\nmetadata: {{name: x}}\nspec:\n  class: {OLD['connector.class']}\n  config:\n"
    return start + "".join(f"    {line}\n" for line in settings)


@pytest.mark.parametrize(
    ("lines", "corrected"),
    [
        (
            ("database.hostname: &h mysql", "database.server.name: *h"),
            ("database.hostname: &h mysql", "topic.prefix: *h"),
        ),
        (("database.server.name: &p 'shop'", "name: *p"), ("topic.prefix: &p 'shop'", "name: *p")),
        (
            ("database.hostname: &h ${HOST}", "topic.prefix: *h"),
            ('database.hostname: &h "${env:HOST}"', 'topic.prefix: "${env:HOST}"'),
        ),
        (
            ("database.include.list: a", "topic.prefix: &t t", "table.whitelist: *t"),
            ("database.include.list: a", "topic.prefix: &t t", 'table.include.list: "a.t"'),
        ),
        (
            ("database.server.id: &n database.server.name", "*n : shop"),
            ("database.server.id: &n database.server.name", "topic.prefix : shop"),
        ),
        (
            ("database.include.list: a", "table.whitelist: >-", "  b,", "  a.c", "topic.prefix: x"),
            ("database.include.list: a", 'table.include.list: "a.b,a.c"', "topic.prefix: x"),
        ),
        (("database.server.name: a", "database.server.name: b"), ("topic.prefix: a", "topic.prefix: b")),
        (
            ("database.include.list: a", 'table.whitelist: "b,😀\\x7f"'),
            ("database.include.list: a", 'table.include.list: "a.b,😀\\u007f"'),
        ),
        (
            ("database.whitelist: a", "database.include.list: ~ # none", "topic.prefix:"),
            ("database.include.list: a", "topic.prefix:"),
        ),
        (
            ("database.include.list: a", "table.whitelist: !!str &t b", "topic.prefix: x"),
            ("database.include.list: a", 'table.include.list: &t "a.b"', "topic.prefix: x"),
        ),
    ],
)
def test_a_setting_of_yaml_with_an_alias_or_an_anchor_is_corrected_alone(
    lines: tuple[str, ...], corrected: tuple[str, ...], tmp_path: Path
) -> None:
    (tmp_path / "old").write_text(_yaml(*lines))
    assert correct(tmp_path / "old").text.replace(_FIRST_LINES, "") == _yaml(*corrected)


def test_a_null_gives_way_to_a_setting_that_gets_its_name(tmp_path: Path) -> None:
    config = {"connector.class": "c", "table.whitelist": "a.b", "table.include.list": None, "topic.prefix": None}
    (tmp_path / "old").write_text(json.dumps({"config": config}))
    corrected = {"connector.class": "c", "table.include.list": "a.b", "topic.prefix": None}
    assert json.loads(correct(tmp_path / "old").text) == {"config": corrected}


@pytest.mark.parametrize(
    ("content", "corrected"),
    [
        ("table.include.list=\ntable.whitelist=a.b\n", "table.include.list=a.b\n"),
        ("config:\n  table.whitelist: a.b\n  table.include.list: ''\n", "config:\n  table.include.list: a.b\n"),
        (
            '{"config":{"table.whitelist":"a.b","table.include.list":" "}}',
            '{"config": {"table.include.list": "a.b"}}\n',
        ),
    ],
)
def test_an_empty_setting_gives_way_to_an_older_name_with_a_value(tmp_path: Path, content: str, corrected: str) -> None:
    (tmp_path / "old").write_text(content)
    assert correct(tmp_path / "old").text == corrected


def test_a_setting_is_added_to_yaml_whose_first_line_is_removed(tmp_path: Path) -> None:
    start = "config:\n  table.whitelist: a.c\n  # ours\n"
    rest = "  table.include.list: a.b\n  schema.history.internal.kafka.bootstrap.servers: k:1\n"
    (tmp_path / "old").write_text(start + rest)
    added = '  bootstrap.servers: "k:1"\n'
    assert correct(tmp_path / "old").text == f"config:\n  # ours\n{added}{rest}"


@pytest.mark.parametrize(
    "lines",
    [
        ("snapshot.mode: &m schema_only", "topic.prefix: *m"),
        ("database.server.name: &p shop", "topic.prefix: *p"),
        ("&k database.server.name: shop", "database.hostname: *k"),
    ],
)
def test_a_correction_that_would_change_other_settings_is_to_be_made_by_hand(
    lines: tuple[str, ...], tmp_path: Path
) -> None:
    (tmp_path / "old").write_text(_yaml(*lines))
    result = _run(tmp_path / "old")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "its settings depend on each other, such as by an alias of YAML" in result.stderr
    assert "Correct it by hand: " in result.stderr
    assert "is not YAML" not in result.stderr


def test_refused_settings_come_first_and_defaults_only_on_request(tmp_path: Path) -> None:
    file = tmp_path / "job.json"
    misspelt = {"table.exclude": "inventory.x"}
    file.write_text(json.dumps({**NEW, "table.blacklist": "inventory.x", **misspelt}))
    shown = CliRunner().invoke(commands, ["config", str(file)]).stdout.splitlines()
    assert [line.split()[0] for line in shown[1:3]] == ["table.blacklist", "table.exclude"]
    assert not any(line.startswith("topic.delimiter") for line in shown)
    everything = CliRunner().invoke(commands, ["config", "--defaults", str(file)]).stdout
    assert "\ntopic.delimiter" in everything


_CONNECT, _DEBEZIUM = "org.apache.kafka.connect.", "io.debezium.transforms."
_UNWRAP = {"transforms": "t", "transforms.t.type": f"{_DEBEZIUM}ExtractNewRecordState"}
_OUTBOX = {"transforms": "t", "transforms.t.type": f"{_DEBEZIUM}outbox.EventRouter"}
_AVRO = {"value.converter": "AvroConverter", "value.converter.schema.registry.url": "http://r:8081"}


@pytest.mark.parametrize(
    ("settings", "refused"),
    [
        ({"value.converter": f"{_CONNECT}storage.StringConverter"}, "value.converter"),
        ({**_UNWRAP, "value.converter": "io.debezium.converters.CloudEventsConverter"}, "value.converter"),
        ({**_UNWRAP, **_AVRO, "transforms.t.route.by.field": "kind"}, "transforms.t.route.by.field"),
        ({**_OUTBOX, **_AVRO}, "value.converter"),
        (
            {
                **_OUTBOX,
                "value.converter": "JsonConverter",
                "transforms.t.table.fields.additional.placement": "kind:envelope",
            },
            "transforms.t.table.fields.additional.placement",
        ),
        (
            {"transforms": "t", "transforms.t.type": f"{_CONNECT}transforms.ValueToKey", "transforms.t.fields": "id"},
            "transforms.t.type",
        ),
        (
            {
                "transforms": "t",
                "transforms.t.type": f"{_CONNECT}transforms.InsertField$Value",
                "transforms.t.partition.field": "p!",
            },
            "transforms.t.type",
        ),
        (
            {
                "transforms": "t",
                "transforms.t.type": f"{_CONNECT}transforms.InsertField$Value",
                "transforms.t.static.value": "v",
            },
            "transforms.t.static.value",
        ),
        (
            {
                "transforms": "t",
                "transforms.t.type": f"{_DEBEZIUM}TimezoneConverter",
                "transforms.t.converted.timezone": "UTC",
                "transforms.t.include.list": "a:b",
                "transforms.t.exclude.list": "a:b",
            },
            "transforms.t.include.list",
        ),
        (
            {
                "transforms": "t",
                "transforms.t.type": f"{_DEBEZIUM}Filter",
                "transforms.t.language": "jsr223.groovy",
                "transforms.t.condition": "value.op == 'c'",
                "provide.transaction.metadata": "true",
            },
            "transforms.t.condition",
        ),
        (
            {
                **_UNWRAP,
                "transforms": "t,r",
                "transforms.t.route.by.field": "kind",
                "transforms.r.type": "RegexRouter",
                "transforms.r.regex": "a",
                "transforms.r.replacement": "b",
            },
            "transforms",
        ),
        ({"table.exclude": "a.b"}, "table.exclude"),
    ],
)
def test_a_setting_that_is_refused_for_its_company_comes_first(
    settings: dict[str, str], refused: str, tmp_path: Path
) -> None:
    file = tmp_path / "job.json"
    file.write_text(json.dumps({**NEW, "transforms": "", **settings}))
    result = CliRunner().invoke(commands, ["config", "--json", str(file)])
    (first, *others) = json.loads(result.stdout)

    assert result.exit_code == 2
    assert (first["name"], first["fate"]) == (refused, "refused")
    assert first["note"] in result.stderr
    assert not any(each["fate"] == "refused" for each in others)


@pytest.mark.parametrize(
    ("changed", "code"),
    [
        ({}, 0),
        ({"database.user": "${USER_OF_NOBODY}"}, 0),
        ({"database.password": "${env:NOT_SET_HERE}"}, 0),
        ({"database.password": "${file:/nowhere/secrets:password}"}, 0),
        ({"database.password": "${vault:path:key}"}, 0),
        ({"database.password": "${secrets:shop/mysql:password}"}, 0),
        ({"database.password": "${secretManager:shop-mysql}"}, 0),
        ({"database.user": "${DB_USER:-cdc}"}, 0),
        ({"database.password": "${file:no-key}"}, 2),
        ({"database.port": "x", "database.password": "${secrets:shop/mysql:password}"}, 2),
        ({"database.user": ""}, 2),
        ({"database.port": "x", "database.user": "${USER_OF_NOBODY}"}, 2),
    ],
)
def test_the_exit_code_tells_whether_the_corrected_file_lacks_only_values(
    changed: dict[str, str], code: int, tmp_path: Path
) -> None:
    (tmp_path / "old").write_text(json.dumps({**OLD, **changed}))
    result = _run(tmp_path / "old")
    assert result.exit_code == code
    assert "topic.prefix" in json.loads(result.stdout)
    assert ("cannot start with the corrected file" in result.stderr) == bool(changed)
    assert "is that of schema.history.internal.kafka.bootstrap.servers" in result.stderr


def test_columns_and_overrides_get_the_database_that_they_lack() -> None:
    given = {
        "database.include.list": "shop",
        "column.blacklist": "orders.email,shop.orders.phone",
        "column.mask.with.5.chars": "orders.ssn",
        "message.key.columns": "orders:id;shop.items:id,no",
        "snapshot.select.statement.overrides": "orders",
        "snapshot.select.statement.overrides.orders": "SELECT * FROM shop.orders WHERE id > 5",
        "column.truncate.to.9.chars": r"shop\\.orders\\.(a|b)",
    }

    changed = {each.new: given[each.old] if each.value is None else each.value for each in corrections(given, {})}

    assert changed == {
        "column.exclude.list": "shop.orders.email,shop.orders.phone",
        "column.mask.with.5.chars": "shop.orders.ssn",
        "message.key.columns": "shop.orders:id;shop.items:id,no",
        "snapshot.select.statement.overrides": "shop.orders",
        "snapshot.select.statement.overrides.shop.orders": "SELECT * FROM shop.orders WHERE id > 5",
    }
