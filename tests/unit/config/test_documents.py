"""Files as people have them: properties, Connect's REST API, Strimzi's resource, a worker's file beside them."""

from __future__ import annotations

import json
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from incsnap.cli.main import commands
from incsnap.config.documents import read_document, read_worker
from incsnap.config.load import explain, from_properties, read
from incsnap.config.unsupported import CHANGE_RECORDS
from incsnap.errors import ConfigError

JOB = {
    "name": "inventory",
    "connector.class": "io.debezium.connector.mysql.MySqlConnector",
    "tasks.max": "1",
    "database.hostname": "db",
    "database.user": "cdc",
    "database.password": "s3cret",
    "topic.prefix": "shop",
    "snapshot.mode": "no_data",
    "signal.enabled.channels": "kafka",
    "schema.history.internal.kafka.topic": "h",
}
WORKER = {
    "bootstrap.servers": "k:9092",
    "group.id": "connect",
    "key.converter": "org.apache.kafka.connect.json.JsonConverter",
    "key.converter.schemas.enable": "false",
    "value.converter": "io.confluent.connect.avro.AvroConverter",
    "value.converter.schema.registry.url": "http://r:8081",
    "producer.linger.ms": "7",
    "offset.storage.topic": "offsets",
    "status.storage.topic": "statuses",
}
STRIMZI = """
apiVersion: v1
kind: ConfigMap
metadata: {name: other}
---
apiVersion: kafka.strimzi.io/v1
kind: KafkaConnector
metadata:
  name: inventory
spec:
  class: io.debezium.connector.mysql.MySqlConnector
  tasksMax: 1
  config:
    database.hostname: db
    database.user: cdc
    database.password: ${env:PASS}
    database.port: 0307
    topic.prefix: shop
    tombstones.on.delete: false
    read.only: no
    table.include.list:
"""


def written(path: Path, content: object) -> Path:
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


def properties(values: dict[str, str]) -> str:
    return "".join(f"{name}={value}\n" for name, value in values.items())


REST: dict[str, Any] = {"name": "inventory", "config": {name: value for name, value in JOB.items() if name != "name"}}


def _resource() -> dict[str, object]:
    config = {name: value for name, value in JOB.items() if name not in ("name", "connector.class", "tasks.max")}
    spec = {"class": JOB["connector.class"], "tasksMax": 1, "config": config}
    return {
        "apiVersion": "kafka.strimzi.io/v1",
        "kind": "KafkaConnector",
        "metadata": {"name": "inventory"},
        "spec": spec,
    }


def _confluent() -> dict[str, object]:
    config = {name: value for name, value in JOB.items() if name not in ("name", "connector.class", "tasks.max")}
    return {"class": JOB["connector.class"], "taskMax": 1, "configs": config}


_LISTED = "apiVersion: v1\nkind: List\nitems:\n- " + json.dumps(_resource()) + "\n"


@pytest.mark.parametrize(
    "content",
    [
        properties(JOB),
        REST,
        JOB,
        {"inventory": {"info": {**REST, "tasks": [], "type": "source"}}},
        _resource(),
        _LISTED,
        [REST],
        {"connectorName": "inventory", "connectorConfiguration": {**REST["config"]}},
        {"kind": "Connector", "metadata": {"name": "inventory"}, "spec": _confluent()},
        "".join(f"{name}: {json.dumps(value)}\n" for name, value in JOB.items()),
        "# a comment\nname: inventory\nconfig:\n" + "".join(f"  {n}: {json.dumps(v)}\n" for n, v in JOB.items()),
    ],
    ids=[
        *("properties", "POST /connectors", "PUT /connectors/NAME/config", "GET /connectors?expand=info"),
        *("kubectl get kafkaconnector NAME -o json", "kubectl get kafkaconnector -o yaml"),
        *(
            "a list of one",
            "MSK Connect",
            "Confluent for Kubernetes",
            "settings as YAML",
            "the REST API's document as YAML",
        ),
    ],
)
def test_a_connectors_file_is_read_in_each_of_its_forms(content: object, tmp_path: Path) -> None:
    assert read_document(written(tmp_path / "a file", content)) == JOB


def test_the_rest_api_makes_texts_of_numbers_and_truth_values(tmp_path: Path) -> None:
    properties = read_document(written(tmp_path / "x", {"config": {"tasks.max": 1, "read.only": False, "name": None}}))
    assert properties == {"tasks.max": "1", "read.only": "false"}


def test_a_strimzi_resource_is_read_with_its_booleans_and_other_values_as_text(tmp_path: Path) -> None:
    assert read_document(written(tmp_path / "connector.yaml", STRIMZI)) == {
        "name": "inventory",
        "connector.class": "io.debezium.connector.mysql.MySqlConnector",
        "tasks.max": "1",
        "database.hostname": "db",
        "database.user": "cdc",
        "database.password": "${env:PASS}",
        "database.port": "0307",
        "topic.prefix": "shop",
        "tombstones.on.delete": "false",
        "read.only": "false",
    }


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('{"config": ', "is not JSON"),
        ('{"config": {"a": ["b"]}}', "a is not a text"),
        ('[ {"config": {}}, {"config": {}}]', "is a list"),
        ('{"a": {"info": {"config": {}}}, "b": {"info": {"config": {}}}}', "has 2 connectors"),
        ("kind: List\nitems:\n", "has 0 resources of the kind KafkaConnector"),
        ("kind: KafkaConnect\n", "has 0 resources of the kind KafkaConnector"),
        (STRIMZI + "---" + STRIMZI, "has 2 resources"),
        ("kind: KafkaConnector\nspec: 3\n", "no spec with a config"),
        ("kind: KafkaConnector\n  spec: {\n", "is not YAML"),
        ("a=\\u12", "is not a properties file"),
    ],
)
def test_what_is_no_settings_file_is_told_with_its_name(content: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=message) as raised:
        read_document(written(tmp_path / "job.file", content))
    assert "job.file" in raised.value.message


@pytest.mark.parametrize("content", [
    {"connectorConfiguration": {"database.password": {"a": "hunter2SECRET"}}},
    {"database.password": {"a": "hunter2SECRET"}},
    {"config": {"database.password": ["hunter2SECRET"]}},
    {"column.mask.hash.SHA-256.with.salt.hunter2SECRET": ["a.b.c"]},
])  # fmt: skip
def test_a_message_about_a_value_in_the_wrong_place_never_shows_it(content: object, tmp_path: Path) -> None:
    file = written(tmp_path / "job.json", content)
    with pytest.raises(ConfigError, match="is not a text but") as raised:
        read_document(file)
    shown = CliRunner().invoke(commands, ["config", str(file)])
    assert "SECRET" not in raised.value.message + raised.value.hint + shown.output


_RESOURCE = "kind: KafkaConnector\nspec:\n  config:\n    "


@pytest.mark.parametrize("content", [
    "kind: KafkaConnector\nspec:\n  config:\n\tdatabase.password: hunter2SECRET\n",
    f"{_RESOURCE}database.password: @hunter2SECRET\n",
    f"{_RESOURCE}database.password: *hunter2SECRET\n",
    f"{_RESOURCE}database.password: !hunter2SECRET x\n",
    f"{_RESOURCE}database.password: !!int hunter2SECRET\n",
    f"{_RESOURCE}database.password: a: hunter2SECRET\n",
    f'{_RESOURCE}database.password: "hunter2SECRET\n',
    "database.password=\\uSECRET\n",
    "curl -X PUT -d '{\"database.password\": \"hunter2SECRET\"}' localhost:8083/connectors/a/config\n",
    '// a comment\n{\n"x": "hunter2SECRET"}\n',
    {"config": '{"database.password": "hunter2SECRET"}'},
    {"a": '{"database.password": "hunter2SECRET"}'},
    {"database.password": "${PASSWORD:-hunter2SECRET}"},
    {"producer.override.sasl.jaas.config": 'x username="${env:HOME}" password="hunter2SECRET";'},
    {"value.converter.schema.registry.url": "http://user:hunter2SECRET@r:8081"},
    {"bootstrap.servers": "http://user:hunter2SECRET@r"},
    {"value.converter.schema.registry.url": "https://KEY:hunter2SECRET@${REG}"},
    {"custom.sanitize.pattern": ".*HOSTNAME", "database.hostname": "SECRET-${env:X}-${Y}"},
    {"custom.sanitize.pattern": "database.server.*", "database.server.name": "SECRET-${Y}"},
    {"column.mask.hash.SHA-256.with.salt.SECRET": "${X}", "connector.class": "c"},
    'column.mask.hash.SHA-256.with.salt.SECRET=a.b\ncolumn.mask.hash.SHA-256.with.salt.SECRET=a.c\n',
    "kind: KafkaConnector\nx: &x {column.mask.hash.MD5.with.salt.SECRET: '${X}'}\nspec: {config: {<<: *x}}\n",
])  # fmt: skip
@pytest.mark.parametrize("fix", [False, True])
def test_no_password_is_shown_whatever_the_shape_of_a_document(content: object, fix: bool, tmp_path: Path) -> None:
    """The corrected file itself, on standard output, is the user's own and keeps what it held."""
    shown = CliRunner().invoke(
        commands, ["config", str(written(tmp_path / "job", content)), *(["--fix"] if fix else [])]
    )
    assert shown.exit_code == 2
    assert "SECRET" not in (shown.stderr if fix else shown.output)


_SERVERS_YAML = (
    "quarkus: {http: {port: 8080}}\ndebezium:\n  sink:\n    type: kafka\n  source:\n    topic: {prefix: a}\n"
)
_OPERATORS = (
    "apiVersion: debezium.io/v1alpha1\nkind: DebeziumServer\n"
    "spec: {sink: {type: kafka}, source: {class: c, config: {}}}"
)


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (f"{_RESOURCE}a: @b\n", "is not YAML: found character '@' that cannot start any token at line 4, column 8"),
        ("curl -d '{}' localhost\n", "is a command of curl"),
        ('// ours\n{\n"database.user": "u"}\n', "names stand in quotes"),
        ('// ours\n{"name": "x", "config": {}}\n', "names stand in quotes"),
        ('"database.user": "u",\n"a": "b"\n', "is JSON without its brace"),
        ('resource "a" "b" {\n  config = {\n    "database.user" = "u"\n  }\n}\n', "names stand in quotes"),
        ('{"a": "b"}\n{"a": "c"}\n', "is not JSON: Extra data"),
        ("DEBEZIUM_SINK_TYPE=kafka\nMYSQL_PORT=1\n", "holds environment variables, not settings"),
        ("{{- if .Values.on }}\nkind: KafkaConnector\n{{- end }}\n", "job is a template"),
        (f"{_RESOURCE}database.hostname: {{{{ .Values.host }}}}\n", "job is a template"),
        (f"{_RESOURCE}{{{{- toYaml .Values.config | nindent 4 }}}}\n", "job is a template"),
        ("{% if on %}\ndatabase.hostname={{ host }}\n{% endif %}\n", "job is a template"),
        ('{"config": {{ config | to_json }}}', "job is a template"),
        ('{"database.hostname": "{{ host }}", }', "is not JSON"),
        ("CREATE SOURCE CONNECTOR x WITH (\n  'connector.class' = 'c'\n);\n", "job is a script"),
        ('### create\nPOST http://localhost:8083/connectors\n\n{\n  "name": "x"\n}\n', "job is a script"),
        ('cat > x.json <<EOF\n{\n "name": "x"\n}\nEOF\n', "job is a script"),
        ("cat <<'EOF' | kubectl apply -f -\nkind: KafkaConnector\nspec:\n  class: c\nEOF\n", "job is a script"),
        ('{"transforms.f.condition": "a \\" << b",\n}', "is not JSON"),
        ('# made by cat <<EOF and {{ host }}\n{"a": "b",\n}', "names stand in quotes"),
        ('{"a": "b", // see http://localhost, then cat <<EOF\n}', "is not JSON"),
        ({"config": '{"database.user": "u"}'}, "config is not an object but a text"),
        (_SERVERS_YAML, r"debezium.source.\*: this is a file of Debezium Server. Write these names without"),
        (_SERVERS_YAML.replace("kafka", "pubsub"), "is a file of Debezium Server that writes to pubsub. incsnap"),
        ("debezium:\n  source: {a: b}\n", "this is a file of Debezium Server. Write these names"),
        ("connector.class: c\ndebezium: 3\n", "topic.prefix: missing"),
        ({"debezium": {"sink": {"type": "kafka"}, "source": {"a": "b"}}}, "this is a file of Debezium Server. Write"),
        (_OPERATORS, "this is a file of Debezium Server. Write these names without"),
        (_OPERATORS.replace("kafka", "redis"), "this is a file of Debezium Server that writes to redis"),
        (
            f"kind: List\nitems:\n- {{{_OPERATORS.replace(chr(10), ', ')}}}\n",
            "this is a file of Debezium Server. Write",
        ),
        ({"kind": "DebeziumServer", "spec": {"sink": {"type": "redis"}}}, "Debezium Server that writes to redis"),
        ({"kind": "DebeziumServer", "spec": 3}, "this is a file of Debezium Server. Write these names"),
        (
            {"database.user": "${A_USER:-root}"},
            r"\$\{A_USER:-...\} is a shell's default. Write its value, or \$\{env:A_USER\}",
        ),
    ],
)
def test_a_document_of_another_kind_gets_a_sentence_of_its_own(content: object, sentence: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=sentence):
        read(written(tmp_path / "job", content))


_BOMB = "kind: KafkaConnector\na: &a [x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"{name}: &{name} [{','.join(['*' + before] * 9)}]\n" for before, name in pairwise("abcdefghi")
)
_MERGED = "kind: KafkaConnector\na: &a {x: 1, y: 2}\n" + "".join(
    f"{name}: &{name} {{<<: [{','.join(['*' + before] * 9)}]}}\n" for before, name in pairwise("abcdefghi")
)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("kind: KafkaConnector\nspec: {config: {a: &a [*a]}}\n", "a is not a text but a list"),
        ("kind: KafkaConnector\nspec: {config: &a {b: *a}}\n", "b is not a text but an object"),
        ('{"a": ' + "[" * 50_000 + "]" * 50_000 + "}", "nested too deeply"),
        ("kind: KafkaConnector\nspec: " + "[" * 50_000 + "]" * 50_000, "nested too deeply"),
        ('{"a": "\\ud800"}', "a holds half a character"),
        ('{"\\udc00": "x"}', "holds half a character"),
        ("a=\\ud800\n", "a holds half a character"),
        ("kind: KafkaConnector\nspec: {config: {a: !!int x}}\n", "is not YAML"),
        ("kind: KafkaConnector\nspec: {config: {a: !!bool x}}\n", "is not YAML"),
        ("kind: List\nitems: 5\n", "has 0 resources"),
        (_BOMB + "spec: {config: {z: *i}}\n", "z is not a text but a list"),
        (_MERGED + "spec: {config: {z: [*i]}}\n", "z is not a text but a list"),
    ],
)
def test_an_odd_file_ends_in_a_sentence_within_a_second(content: str, message: str, tmp_path: Path) -> None:
    began = time.process_time()
    with pytest.raises(ConfigError, match=message) as raised:
        read_document(written(tmp_path / "job.file", content))
    assert time.process_time() - began < 3
    raised.value.message.encode()


@pytest.mark.parametrize("content", ["database.password=hunter2 \nproducer.ssl.key.password=k \n",
                                     {"database.password": "hunter2 ", "producer.ssl.key.password": "k "}])  # fmt: skip
def test_a_password_of_mysqls_keeps_the_blank_at_its_end(content: object, tmp_path: Path) -> None:
    given = read_document(written(tmp_path / "job.file", content))
    settings = from_properties(
        {**JOB, "bootstrap.servers": "k:9092", "checkpoint.location": "/x", **given}, {}
    ).settings
    assert settings.mysql.password.get_secret_value() == "hunter2 "
    assert settings.kafka.producer["ssl.key.password"] == "k"


def test_a_connector_inherits_what_is_its_own_from_the_worker_and_nothing_else(tmp_path: Path) -> None:
    worker = written(tmp_path / "worker.properties", properties(WORKER))
    loaded = read(written(tmp_path / "job.json", {"name": "x", "config": JOB}), worker)
    assert loaded.settings.kafka.bootstrap_servers == "k:9092"
    assert loaded.settings.kafka.producer == {"linger.ms": "7"}
    assert (loaded.settings.formats.key.kind, loaded.settings.formats.value.kind) == ("json", "avro")
    assert "group.id" not in str(loaded.warnings)


def test_a_connector_with_a_converter_of_its_own_gets_none_of_the_workers(tmp_path: Path) -> None:
    worker = written(tmp_path / "worker.properties", properties(WORKER))
    own = {**JOB, "value.converter": "org.apache.kafka.connect.json.JsonConverter", "producer.override.linger.ms": "1"}
    loaded = read(written(tmp_path / "job.json", own), worker)
    assert loaded.settings.formats.value.kind == "json"
    assert not any("schema.registry" in warning for warning in loaded.warnings)
    assert loaded.settings.kafka.producer == {"linger.ms": "1"}


@pytest.mark.parametrize(
    ("of_worker", "option", "value", "schemas", "url"),
    [
        (
            {"value.converter": "org.apache.kafka.connect.json.JsonConverter"},
            "value.converter.schemas.enable",
            "false",
            True,
            "",
        ),
        ({}, "value.converter.schema.registry.url", "http://mine:8081", False, "http://r:8081"),
    ],
)
def test_a_connector_without_a_converter_has_no_options_of_one_as_in_kafka_connect(
    of_worker: dict[str, str], option: str, value: str, schemas: bool, url: str, tmp_path: Path
) -> None:
    given = {name: text for name, text in WORKER.items() if not name.startswith("value.converter")}
    given |= of_worker or {name: text for name, text in WORKER.items() if name.startswith("value.converter")}
    worker = written(tmp_path / "worker.properties", properties(given))
    job = written(tmp_path / "job.json", {**JOB, option: value, "key.converter": ""})
    loaded = read(job, worker)

    assert loaded.settings.formats.value.schemas == schemas
    assert loaded.settings.formats.value_registry.url == url
    assert loaded.settings.formats.key.kind == "json"
    (warning,) = (each for each in loaded.warnings if option in each)
    assert "because the worker's file has the converter and this file has not" in warning
    rows = [(each.name, each.origin, each.fate, each.value) for each in explain(job, worker).settings]
    assert (option, "file", "without effect", value) in rows
    assert [fate for name, origin, fate, _ in rows if (name, origin) == (option, "worker")] == ["obeyed"] * bool(url)


def test_secrets_are_found_by_what_the_worker_calls_their_providers(tmp_path: Path) -> None:
    (tmp_path / "password").write_text("from the folder", encoding="utf-8")
    start = "org.apache.kafka.common.config.provider."
    providers = {
        "config.providers": "vault, mounted",
        "config.providers.vault.class": "com.acme.VaultConfigProvider",
        "config.providers.mounted.class": f"{start}DirectoryConfigProvider",
    }
    worker = written(tmp_path / "worker.properties", properties({**WORKER, **providers}))
    job = written(tmp_path / "job.json", {**JOB, "database.password": f"${{mounted:{tmp_path}:password}}"})
    assert read(job, worker).settings.mysql.password.get_secret_value() == "from the folder"
    with pytest.raises(ConfigError, match="the provider 'mounted' is not known; env, file, directory are"):
        read(job)
    other = written(tmp_path / "other.json", {**JOB, "database.password": "${vault:a:b}"})
    with pytest.raises(ConfigError, match="the provider 'vault' is not known; env, file, directory, mounted are"):
        read(other, worker)


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ('{"a": "b"}\n{"a": "c"}\n', "Give each job a file of its own, with one object of JSON"),
        ('{"database.password": "\\${P}"}\n', "A shell's script is no JSON"),
        ('{"a": 1 // one\n}\n', "Correct the JSON there. It has no comments"),
    ],
)
def test_a_fault_in_json_is_told_with_its_repair(text: str, hint: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="is not JSON") as refused:
        read_document(written(tmp_path / "job.json", text))
    assert hint in refused.value.hint


def test_yaml_whose_lines_all_begin_with_blanks_is_read(tmp_path: Path) -> None:
    text = ' name: shop\n config:\n   connector.class: "c"\n   topic.prefix: "shop"  # ours\n'
    assert read_document(written(tmp_path / "job.yaml", text))["topic.prefix"] == "shop"


@pytest.mark.parametrize("name", sorted(CHANGE_RECORDS))
def test_a_setting_that_would_change_records_stops_the_start_unless_that_is_accepted(name: str) -> None:
    value = {"table.ignore.builtin": "false", "topic.creation.enable": "false"}.get(name, "true")
    properties = {**JOB, "bootstrap.servers": "k:9092", "checkpoint.location": "/x", name: value}
    properties["guardrail.collections.max"] = "10"
    with pytest.raises(ConfigError, match=f"{name}: not supported") as raised:
        from_properties(properties, {})
    assert f"incsnap.ignore={name}" in raised.value.message
    from_properties({**properties, "incsnap.ignore": name}, {})


_HEADERS = "org.apache.kafka.connect.storage.SimpleHeaderConverter"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("transforms", ""),
        ("table.ignore.builtin", "TRUE"),
        ("gtid.source.includes", ".*"),
        ("header.converter", _HEADERS),
        ("sourceinfo.struct.maker", "io.debezium.connector.mysql.MySqlSourceInfoStructMaker"),
    ],
)
def test_a_setting_that_asks_for_what_is_done_anyway_stops_nothing(name: str, value: str) -> None:
    from_properties({**JOB, "bootstrap.servers": "k:9092", "checkpoint.location": "/x", name: value}, {})


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("table.whitelist", "Write table.include.list"),
        ("column.blacklist", "Write column.exclude.list"),
    ],
)
def test_names_of_other_files_that_would_leave_something_out_are_refused(name: str, why: str) -> None:
    given = {**JOB, "bootstrap.servers": "k:9092", "checkpoint.location": "/x", name: "1"}
    with pytest.raises(ConfigError) as refused:
        from_properties(given, {})
    assert why in refused.value.message


@pytest.mark.parametrize(
    ("sink", "sentence"),
    [
        ("kafka", "of Debezium Server. Write these names without debezium.source."),
        ("rabbitmq", "debezium.sink.type: this is a file of Debezium Server that writes to rabbitmq."),
    ],
)
def test_a_file_of_debezium_server_gets_one_sentence(sink: str, sentence: str) -> None:
    given = {f"debezium.source.{name}": value for name, value in JOB.items()}
    with pytest.raises(ConfigError, match="has one problem") as refused:
        from_properties({**given, "debezium.sink.type": sink}, {})
    assert sentence in refused.value.message


def test_a_stray_name_of_debezium_server_does_not_make_a_connectors_file_one_of_it() -> None:
    given = {**JOB, "bootstrap.servers": "k:9092", "checkpoint.location": "/x", "debezium.source.name": "a"}
    assert "debezium.source.name" in "".join(from_properties(given, {}).warnings)


@pytest.mark.parametrize(("given", "has_worker"), [(JOB, True), ({}, False)])
def test_only_a_connectors_file_is_told_that_a_worker_has_the_brokers(given: dict[str, str], has_worker: bool) -> None:
    with pytest.raises(ConfigError, match=r"bootstrap\.servers: missing; the Kafka brokers") as refused:
        from_properties(given, {})
    assert ("name its file with --worker" in refused.value.message) == has_worker


def test_an_unsupported_transform_is_told_each_supported_class_once() -> None:
    with pytest.raises(ConfigError, match=r"t\.type: a\.B is not supported") as refused:
        from_properties({**JOB, "transforms": "t", "transforms.t.type": "a.B"}, {})
    assert refused.value.message.count("InsertField") == 1
    assert "org.apache" not in refused.value.message


def test_a_file_of_debezium_1_is_told_what_its_prefix_is_called_now() -> None:
    with pytest.raises(ConfigError, match=r"topic\.prefix: missing.*\(Debezium 1 called it database\.server\.name\)"):
        from_properties({"database.server.name": "shop", "bootstrap.servers": "k:9092"}, {})


def test_ignoring_what_is_not_there_is_told() -> None:
    properties = {**JOB, "bootstrap.servers": "k:9092", "checkpoint.location": "/x", "incsnap.ignore": "transforms"}
    assert any("no need to ignore transforms" in warning for warning in from_properties(properties, {}).warnings)


def test_a_connector_of_another_database_is_refused() -> None:
    properties = {**JOB, "bootstrap.servers": "k:9092", "checkpoint.location": "/x"}
    with pytest.raises(ConfigError, match=r"connector\.class: .*Postgres.* is not a connector for MySQL"):
        from_properties({**properties, "connector.class": "io.debezium.connector.postgresql.PostgresConnector"}, {})


def test_a_job_without_a_checkpoint_keeps_its_state_by_its_prefix_and_says_where(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    loaded = from_properties({**JOB, "bootstrap.servers": "k:9092"}, {})
    assert loaded.settings.checkpoint_location == str(tmp_path / "incsnap" / "shop")
    assert any(loaded.settings.checkpoint_location in warning for warning in loaded.warnings)


def test_each_setting_is_explained_with_its_origin_and_what_becomes_of_it(tmp_path: Path) -> None:
    worker = written(tmp_path / "worker.properties", properties(WORKER))
    job = {**JOB, "max.batch.size": "9", "poll.interval.ms": "500", "tombstone.on.delete": "false"}
    job |= {"producer.override.buffer.memory": "1"}
    job |= {"transforms": "unwrap", "transforms.unwrap.type": "x.Unwrap", "transforms.unwrap.add.fields": "op"}
    explanation = explain(written(tmp_path / "job.json", job), worker)
    rows = {each.name: each for each in explanation.settings}
    assert "transforms" in explanation.problem
    assert rows["database.hostname"].value == "db"
    expected = {
        "bootstrap.servers": ("worker", "obeyed"),
        "database.password": ("file", "obeyed"),
        "max.batch.size": ("file", "obeyed"),
        "poll.interval.ms": ("file", "without effect"),
        "schema.history.internal.kafka.topic": ("file", "without effect"),
        "transforms.unwrap.type": ("file", "refused"),
        "transforms.unwrap.add.fields": ("file", "without effect"),
        "tombstone.on.delete": ("file", "unknown"),
    }
    assert {name: (rows[name].origin, rows[name].fate) for name in expected} == expected
    assert "tombstones.on.delete" in rows["tombstone.on.delete"].note
    assert (rows["topic.delimiter"].value, rows["topic.delimiter"].origin) == (".", "default")
    assert "group.id" not in rows
    assert rows["producer.override.buffer.memory"].fate == "without effect"
    assert (rows["max.queue.size.in.bytes"].value, rows["max.queue.size.in.bytes"].origin) == ("67108864", "default")
    assert rows["snapshot.max.threads"].value == ""
    assert "Default: half of Spark's task slots" in rows["snapshot.max.threads"].note


def test_a_setting_that_another_one_makes_idle_is_not_called_obeyed(tmp_path: Path) -> None:
    idle = {
        "heartbeat.action.query": "DELETE FROM t",
        "topic.creation.spare.partitions": "3",
        "snapshot.mode.configuration.based.snapshot.data": "true",
        "snapshot.select.statement.overrides.inventory.t": "SELECT * FROM inventory.t WHERE a = 1",
    }
    explanation = explain(written(tmp_path / "job.json", {**JOB, "bootstrap.servers": "k:9092", **idle}))

    assert {each.name: each.fate for each in explanation.settings if each.name in idle} == dict.fromkeys(
        idle, "without effect"
    )


def test_the_pause_between_batches_has_an_effect_where_the_checkpoint_is_in_a_bucket(tmp_path: Path) -> None:
    job = {**JOB, "bootstrap.servers": "k:9092", "poll.interval.ms": "100", "checkpoint.location": "s3a://bucket/shop"}
    fates = []
    for location in ("s3a://bucket/shop", "/var/lib/shop"):
        explanation = explain(written(tmp_path / "job.json", {**job, "checkpoint.location": location}))
        (row,) = (each for each in explanation.settings if each.name == "poll.interval.ms")
        fates.append((row.fate, any("poll.interval.ms" in warning for warning in explanation.warnings)))
    assert fates == [("obeyed", False), ("without effect", True)]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("max.batch.size", "2048"),
        ("max.queue.size.in.bytes", "1048576"),
        ("snapshot.max.threads", "1"),
        ("database.ssl.truststore", "/etc/ca.pem"),
    ],
)
def test_what_is_obeyed_otherwise_than_one_may_think_has_a_note(name: str, value: str, tmp_path: Path) -> None:
    explanation = explain(written(tmp_path / "job.json", {**JOB, "bootstrap.servers": "k:9092", name: value}))
    (row,) = (each for each in explanation.settings if each.name == name)
    assert (row.fate, row.note != "") == ("obeyed", True)


@pytest.mark.parametrize("algorithm", ["SHA-256", "SHA-257"])
def test_a_salt_is_shown_by_nobody_though_it_is_in_a_name(algorithm: str, tmp_path: Path) -> None:
    name = f"column.mask.hash.{algorithm}.with.salt.pepper"
    explanation = explain(written(tmp_path / "job.json", {**JOB, "bootstrap.servers": "k:9092", name: "db.t.c"}))
    assert "pepper" not in repr(explanation)
    (mask,) = (each for each in explanation.settings if each.name.startswith("column.mask"))
    assert mask.fate == ("obeyed" if algorithm == "SHA-256" else "refused")


def test_the_config_command_shows_it_as_a_table_and_as_json_without_secrets(tmp_path: Path) -> None:
    job = written(tmp_path / "job.json", {**JOB, "bootstrap.servers": "k:9092"})
    shown = CliRunner().invoke(commands, ["config", str(job)])
    assert shown.exit_code == 0
    assert "inventory" in shown.output
    as_json = CliRunner().invoke(commands, ["config", str(job), "--json", "--no-defaults"])
    assert {each["origin"] for each in json.loads(as_json.stdout)} == {"file"}
    assert "s3cret" not in shown.output + as_json.output
    refused = CliRunner().invoke(commands, ["config", str(written(job, {**JOB, "post.processors": "p"}))])
    assert refused.exit_code == 2
    assert "incsnap.ignore=post.processors" in " ".join(refused.output.split())


@pytest.mark.parametrize(
    "text",
    [
        "{name: x, config: {database.hostname: db, topic.prefix: shop}}\n",
        "# ours\n---\n{name: x,\n config: {database.hostname: db, topic.prefix: 'shop'}}\n",
        '{"name": "x", config: {"database.hostname": "db", "topic.prefix": "shop"}}\n',
        "name: x\nconfig: {database.hostname: db, topic.prefix: shop}\n",
        "- {name: x, config: {database.hostname: db, topic.prefix: shop}}\n",
    ],
)
def test_yaml_in_braces_is_read_as_yaml(text: str, tmp_path: Path) -> None:
    (tmp_path / "job").write_text(text)
    assert read_document(tmp_path / "job") == {"name": "x", "database.hostname": "db", "topic.prefix": "shop"}


def test_properties_with_a_colon_behind_the_class_are_read_as_kafka_connect_reads_them(tmp_path: Path) -> None:
    (tmp_path / "job").write_text("connector.class: c\ndatabase.hostname=db\ntopic.prefix = shop\n")
    assert read_document(tmp_path / "job") == {
        "connector.class": "c",
        "database.hostname": "db",
        "topic.prefix": "shop",
    }
    (tmp_path / "job").write_text("connector.class: c\nquery: |\n  a=b\n")
    assert read_document(tmp_path / "job") == {"connector.class": "c", "query": "a=b\n"}


@pytest.mark.parametrize(
    ("name", "lines", "values"),
    [
        ("job", ("! ours", "topic.prefix: shop"), {"topic.prefix": "shop"}),
        ("job", ("table.include.list: a.b,\\", "  a.c"), {"table.include.list": "a.b,a.c"}),
        ("job.properties", ("database.password: a: b",), {"database.password": "a: b"}),
        ("job.properties", ("database.password: 'p' # x",), {"database.password": "'p' # x"}),
        ("job.yml", ("query: >-", "  a", "  b"), {"query": "a b"}),
        ("job.yaml", ("topic.prefix: 'a'", "# C:\\share\\", "query: a\\"), {"topic.prefix": "a", "query": "a\\"}),
        ("job", ("# curl \\", "topic.prefix: 'a'  # ours"), {"topic.prefix": "a"}),
        ("job", ("topic.prefix:", "  !!str 1"), {"topic.prefix": "1"}),
        ("job", ("query: |- # ours", "  a \\", "  ! b"), {"query": "a \\\n! b"}),
        ("job", ('query: "a=\\"b\\" \\', '  c \\', '  d"'), {"query": 'a="b" c d'}),
    ],
)  # fmt: skip
def test_colons_are_those_of_properties_or_of_yaml(
    name: str, lines: tuple[str, ...], values: dict[str, str], tmp_path: Path
) -> None:
    text = "".join(f"{line}\n" for line in ("connector.class: c", *lines))
    assert read_document(written(tmp_path / name, text)) == {"connector.class": "c", **values}


def test_a_fault_in_yaml_with_a_login_is_told_as_one_of_yaml(tmp_path: Path) -> None:
    text = 'connector.class: c\ndatabase.hostname: %X\nproducer.sasl.jaas.config: >-\n  Foo\n  username="x"\n'
    with pytest.raises(ConfigError, match="is not YAML: found character '%' that cannot start any token at line 2"):
        read_document(written(tmp_path / "job", text))


@pytest.mark.parametrize("text", ['{"a": "b",}', '{"a": "b" "c": "{d: e"}', '{"a": b, c: [}'])
def test_json_with_a_fault_is_not_taken_for_yaml(text: str, tmp_path: Path) -> None:
    (tmp_path / "job").write_text(text)
    with pytest.raises(ConfigError, match="is not JSON"):
        read_document(tmp_path / "job")


@pytest.mark.parametrize(
    "text",
    [
        "".join(f"{name}={value}\n" for name, value in JOB.items()) + "bootstrap.servers=k\ntopic.prefix : other\n",
        json.dumps({**JOB, "bootstrap.servers": "k"})[:-1] + ', "topic.prefix": "other"}',
        json.dumps({"name": "x", "config": {**JOB, "bootstrap.servers": "k"}})[:-2] + ', "topic.prefix": "other"}}',
        "config:\n"
        + "".join(f"  {name}: {value}\n" for name, value in JOB.items())
        + "  bootstrap.servers: k\n  topic.prefix: other\n",
    ],
)
def test_a_name_that_stands_twice_gives_a_warning(text: str, tmp_path: Path) -> None:
    (tmp_path / "job").write_text(text)
    warning = "topic.prefix stands more than once; the last value is used"
    assert explain(tmp_path / "job").warnings[:1] == (f"{tmp_path / 'job'}: {warning}",)
    assert read_document(tmp_path / "job")["topic.prefix"] == "other"
    for options in ([], ["--fix"]):
        shown = CliRunner().invoke(commands, ["config", *options, str(tmp_path / "job")])
        assert warning in shown.stderr
        assert "name stands" not in shown.stderr


_CLUSTER = """
apiVersion: kafka.strimzi.io/v1
kind: KafkaConnect
metadata: {name: cluster}
spec:
  bootstrapServers: k:9092
  groupId: connect
  offsetStorageTopic: offsets
  statusStorageTopic: statuses
  config:
    key.converter: org.apache.kafka.connect.json.JsonConverter
    key.converter.schemas.enable: false
    value.converter: io.confluent.connect.avro.AvroConverter
    value.converter.schema.registry.url: http://r:8081
    producer.linger.ms: 7
"""


def test_a_strimzi_worker_gives_the_same_job_as_its_properties(tmp_path: Path) -> None:
    both = written(tmp_path / "both.yml", STRIMZI + "---" + _CLUSTER)
    plain = written(tmp_path / "worker.properties", properties(WORKER))
    assert read_worker(both) == WORKER
    job = written(tmp_path / "job.json", {**REST, "config": {**REST["config"], "checkpoint.location": "/c"}})
    first, second = (json.loads(read(job, worker).settings.to_json()) for worker in (both, plain))
    assert {**first, "run_id": ""} == {**second, "run_id": ""}


def test_a_strimzi_worker_without_converters_has_those_that_strimzi_sets(tmp_path: Path) -> None:
    lines = [line for line in _CLUSTER.splitlines() if ".converter: " not in line and "registry" not in line]
    worker = written(tmp_path / "worker.yml", "\n".join(lines))
    job = written(tmp_path / "job.json", {"name": "x", "config": JOB})
    loaded = read(job, worker)
    assert (loaded.settings.formats.key.kind, loaded.settings.formats.value.kind) == ("json", "json")
    assert (loaded.settings.formats.key.schemas, loaded.settings.formats.value.schemas) == (False, True)
    assert "converter" not in str(loaded.warnings)


def test_nobody_who_gave_a_worker_is_advised_to_give_one(tmp_path: Path) -> None:
    worker = written(tmp_path / "worker.properties", "bootstrap.servers=k:9092\n")
    (warning,) = (each for each in read(written(tmp_path / "job.json", JOB), worker).warnings if "converter" in each)
    assert "key.converter and value.converter: in neither file, so keys and values are JSON without schemas" in warning
    assert "--worker" not in warning
    with pytest.raises(ConfigError, match=r"bootstrap\.servers: missing") as refused:
        read(tmp_path / "job.json", written(worker, "group.id=connect\n"))
    assert "--worker" not in refused.value.message


@pytest.mark.parametrize(
    ("worker", "message"),
    [
        (_CLUSTER + "  authentication: {type: scram-sha-512}\n", r"takes its login to Kafka \(authentication\)"),
        (_CLUSTER + "---" + _CLUSTER, "has 2 resources of the kind KafkaConnect"),
        (STRIMZI, "has 0 resources of the kind KafkaConnect"),
        ("services:\n  connect:\n    environment:\n      CONNECT_GROUP_ID: a\n", "has no setting of a worker"),
        ("version: '3'\nservices:\n  connect:\n    image: a\n", "has no setting of a worker"),
    ],
)
def test_a_worker_whose_settings_are_elsewhere_is_refused(worker: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=message):
        read_worker(written(tmp_path / "worker.yml", worker))


@pytest.mark.parametrize(
    ("document", "field"),
    [
        ({**REST, "initial_state": "PAUSED"}, "initial_state: paused"),
        ({**REST, "initial_state": "STOPPED"}, "initial_state: stopped"),
        ({**REST, "initial_state": "RUNNING"}, ""),
        ("state: stopped", "state: stopped"),
        ("state: running", ""),
        ("pause: true", "pause: true"),
        ("pause: false", ""),
    ],
)
def test_a_document_that_pauses_its_connector_is_warned_of(document: object, field: str, tmp_path: Path) -> None:
    if isinstance(document, str):
        config = json.dumps({**JOB, "bootstrap.servers": "k:9092"})
        document = f"kind: KafkaConnector\nspec:\n  {document}\n  config: {config}\n"
    job = written(tmp_path / "job", document)
    shown = CliRunner().invoke(commands, ["config", str(job)])
    fixed = CliRunner().invoke(commands, ["config", "--fix", str(job)])
    for output in (shown.output, fixed.stderr):
        assert ("has no effect: the job runs" in " ".join(output.split())) == bool(field)
        assert field in output


@pytest.mark.parametrize(
    ("setting", "sentence"),
    [
        ({"topic.creation.enable": "false"}, "topics would still be created"),
        ({"header.converter": "a.B"}, "a.B would not write headers"),
    ],
)
def test_a_worker_that_asks_for_what_is_not_supported_stops_the_start(
    setting: dict[str, str], sentence: str, tmp_path: Path
) -> None:
    (name,) = setting
    worker = written(tmp_path / "worker.properties", properties({**WORKER, **setting}))
    job = written(tmp_path / "job.json", JOB)
    with pytest.raises(ConfigError, match=f"{name}: not supported, {sentence}"):
        read(job, worker)
    (row,) = (each for each in explain(job, worker).settings if each.name == name)
    assert (row.origin, row.fate) == ("worker", "refused")
    read(written(tmp_path / "other.json", {**JOB, "incsnap.ignore": name}), worker)


def test_a_connectors_own_header_converter_wins_but_topics_are_the_workers_to_create(tmp_path: Path) -> None:
    own = written(tmp_path / "job.json", {**JOB, "header.converter": _HEADERS, "topic.creation.enable": "true"})
    read(own, written(tmp_path / "worker.properties", properties({**WORKER, "header.converter": "a.B"})))
    with pytest.raises(ConfigError, match="topics would still be created"):
        read(own, written(tmp_path / "worker.properties", properties({**WORKER, "topic.creation.enable": "false"})))
