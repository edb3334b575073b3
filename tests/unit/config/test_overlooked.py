"""Settings that would start a job which does something else than the user expects are refused, or warned of."""

from __future__ import annotations

import pytest

from incsnap.config.corrections import corrections
from incsnap.config.load import from_properties
from incsnap.config.record_form import record_form
from incsnap.config.references import with_variables
from incsnap.config.topics import context_headers
from incsnap.errors import ConfigError
from tests.support.job_settings import LEAST, loaded_with, problems_with

CONNECTOR = "io.debezium.connector.mysql.MySqlConnector"
_UNWRAP = {"transforms": "u", "transforms__u__type": "io.debezium.transforms.ExtractNewRecordState"}


def test_a_connectors_file_without_converters_is_warned_of() -> None:
    (warning,) = (each for each in loaded_with(connector__class=CONNECTOR).warnings if "converter" in each)
    assert "key.converter and value.converter: not in this file" in warning
    assert "--worker" in warning
    assert not any("--worker" in each for each in loaded_with().warnings)


def test_the_warning_about_missing_converters_says_what_the_options_of_the_file_make_of_them() -> None:
    def sentence(**changes: str) -> str:
        (warning,) = (each for each in loaded_with(connector__class=CONNECTOR, **changes).warnings if "JSON" in each)
        return warning.partition(". ")[0]

    start = "key.converter and value.converter: not in this file, so "
    assert sentence() == f"{start}keys and values are JSON without schemas"
    with_values = sentence(value__converter__schemas__enable="true")
    assert with_values == f"{start}keys are JSON without schemas and values are JSON with schemas"
    assert sentence(key__converter="StringConverter") == (
        "value.converter: not in this file, so values are JSON without schemas"
    )


def test_a_connectors_file_has_debeziums_extended_headers_unless_it_switches_them_off() -> None:
    def names(**changes: str) -> list[str]:
        settings = loaded_with(**changes).settings
        return [header.name.removeprefix("__debezium.context.") for header in context_headers(settings)]

    assert names(connector__class=CONNECTOR) == ["connectorLogicalName", "taskId", "connectorName", "runId"]
    assert names(extended__headers__enabled="true") == names(connector__class=CONNECTOR)
    assert names() == names(connector__class=CONNECTOR, extended__headers__enabled="false") == []


def test_each_start_has_a_run_id_of_its_own_which_makes_no_other_form_of_records() -> None:
    one, other, without = (
        loaded_with(**changes).settings
        for changes in (
            {"connector__class": CONNECTOR},
            {"connector__class": CONNECTOR},
            {"connector__class": CONNECTOR, "extended__headers__enabled": "false"},
        )
    )
    assert len({one.run_id, other.run_id, without.run_id}) == 3
    assert record_form(one) == record_form(other) != record_form(without)


@pytest.mark.parametrize("name", ["database.password", "database.hostname", "topic.prefix", "table.include.list"])
def test_a_placeholder_that_nobody_filled_in_stops_the_start(name: str) -> None:
    text = problems_with(**{name.replace(".", "__"): "${DB_VALUE}"})
    assert f"{name}: ${{DB_VALUE}} is not filled in. Write its value, or ${{env:DB_VALUE}}" in text
    assert f"{name}: missing" not in text


_OF_CONNECT = "org.apache.kafka.connect.transforms."


@pytest.mark.parametrize(
    ("class_", "options", "option"),
    [
        (f"{_OF_CONNECT}InsertField$Value", {"static.field": "env"}, "static.value"),
        ("InsertField$Value", {"static.field": "env"}, "static.value"),
        (f"{_OF_CONNECT}InsertHeader", {"header": "env"}, "value.literal"),
        (f"{_OF_CONNECT}TimestampConverter$Value", {"field": "t"}, "target.type"),
        (f"{_OF_CONNECT}MaskField$Value", {"fields": "a"}, "replacement"),
        (f"{_OF_CONNECT}RegexRouter", {"replacement": "$1"}, "regex"),
        ("io.debezium.transforms.outbox.EventRouter", {}, "table.field.event.id"),
        ("io.debezium.transforms.ExtractNewRecordState", {}, "add.fields"),
        ("io.debezium.transforms.ExtractNewRecordState", {}, "delete.tombstone.handling.mode"),
    ],
)
def test_a_placeholder_in_an_option_of_a_transform_stops_the_start_alone(
    class_: str, options: dict[str, str], option: str
) -> None:
    name = f"transforms.t.{option}"
    given = {"transforms": "t", "transforms.t.type": class_, name: "${A_VALUE}"}
    given |= {f"transforms.t.{each}": value for each, value in options.items()}
    with pytest.raises(ConfigError, match="has one problem") as refused:
        from_properties({**LEAST, **given}, {})
    assert f"{name}: ${{A_VALUE}} is not filled in. Write its value, or ${{env:A_VALUE}}" in refused.value.message
    (change,) = corrections(given, {})
    assert (change.old, change.new, change.value) == (name, name, "${env:A_VALUE}")


@pytest.mark.parametrize(
    ("class_", "options"),
    [
        (f"{_OF_CONNECT}RegexRouter", {"regex": "(?<db>.*)", "replacement": "${db}"}),
        (
            "io.debezium.transforms.ByLogicalTableRouter",
            {
                "topic.regex": "(?<db>.*)",
                "topic.replacement": "${db}",
                "key.field.regex": "(?<t>.*)",
                "key.field.replacement": "${t}",
            },
        ),
        ("io.debezium.transforms.outbox.EventRouter", {"route.topic.replacement": "events.${routedByValue}"}),
        ("com.example.Route", {"to": "${topic}"}),
        (f"{_OF_CONNECT}TimestampRouter", {"topic.format": "${topic}-${timestamp}"}),
    ],
)
def test_what_a_transform_fills_in_itself_stays(class_: str, options: dict[str, str]) -> None:
    given = {"transforms": "t", "transforms.t.type": class_, "incsnap.ignore": "transforms.t"}
    given |= {f"transforms.t.{name}": value for name, value in options.items()}
    from_properties({**LEAST, **given}, {})
    assert corrections(given, {}) == ()
    if class_.startswith("io.debezium") or "Regex" in class_:
        from_properties({**LEAST, **given, "incsnap.ignore": ""}, {})


@pytest.mark.parametrize("value", ["${A_VALUE}", "${vault:secret/data:a}"])
@pytest.mark.parametrize(
    ("listed", "ignored"),
    [
        ({"transforms": "other"}, "transforms.other"),
        ({"transforms": "t"}, "transforms.t"),
        ({"transforms": "t,t.u"}, "transforms.t"),
        ({"transforms": "t,other"}, "transforms"),
        ({}, ""),
    ],
)
def test_an_option_that_nothing_reads_may_have_a_placeholder(listed: dict[str, str], ignored: str, value: str) -> None:
    given = {**listed, "incsnap.ignore": ignored}
    given |= {f"transforms.{name}.type": "io.debezium.transforms.Older" for name in ("t", "other")}
    given |= {"transforms.t.u.type": f"{_OF_CONNECT}InsertHeader", "transforms.t.u.header": "h"}
    given |= {"transforms.t.u.value.literal": "1", "transforms.t.option": value, "predicates.p.pattern": value}
    from_properties({**LEAST, **given}, {})
    assert corrections(given, {}) == ()


def test_the_class_of_a_transform_with_a_dot_in_its_name_decides_about_its_placeholders() -> None:
    given = {"transforms": "a,a.b", "transforms.a.type": "com.example.Route", "transforms.a.to": "${topic}"}
    given |= {"transforms.a.b.type": f"{_OF_CONNECT}RegexRouter", "transforms.a.b.regex": "${A_VALUE}"}
    given |= {"transforms.a.b.replacement": "$1"}
    (change,) = corrections(given, {})
    assert change.new == "transforms.a.b.regex"
    assert corrections({**given, "transforms.a.b.type": "com.example.Route"}, {}) == ()


def test_a_placeholder_in_a_chain_behind_a_reference_stops_the_start() -> None:
    given = {"transforms": "${env:CHAIN}", "transforms.t.type": f"{_OF_CONNECT}RegexRouter"}
    given |= {"transforms.t.regex": "${A_VALUE}", "transforms.t.replacement": "x"}
    with pytest.raises(ConfigError, match=r"\$\{A_VALUE\} is not filled in"):
        from_properties({**LEAST, **given}, {"CHAIN": "t"})


def test_asterisks_are_a_value_of_a_transform() -> None:
    given = {"transforms": "maskPassword", "transforms.maskPassword.type": f"{_OF_CONNECT}MaskField$Value"}
    given |= {"transforms.maskPassword.fields": "password", "transforms.maskPassword.replacement": "****"}
    assert corrections(given, {}) == ()
    given |= {"transforms": "u,maskPassword", "transforms.u.type": _UNWRAP["transforms__u__type"]}
    from_properties({**LEAST, **given}, {})


@pytest.mark.parametrize("name", ["database.password", "producer.sasl.jaas.config", "kafka.api.secret"])
def test_a_secret_of_asterisks_is_a_value_that_is_missing(name: str) -> None:
    variable = f"${{env:{name.upper().replace('.', '_')}}}"
    given = {name: "****************"}
    if name != "kafka.api.secret":
        text = problems_with(**{name.replace(".", "__"): "****************"})
        assert (
            f"{name}: only asterisks, which stand for a value that is not shown. Write its value, or {variable}" in text
        )
        (change,) = corrections(given, {})
        assert (change.new, change.value) == (name, variable)
    managed = {**given, "connector.class": "MySqlCdcSourceV2"}
    assert any(variable in (each.value or "") for each in corrections(managed, {}))


@pytest.mark.parametrize(
    ("value", "repair"),
    [
        ("<db-hostname>", "Write its value"),
        ("<your brokers>:9092", "Write its value"),
        ("{{ .Values.host }}", "Write its value"),
        ("$DB_HOST", "Write its value, or ${env:DB_HOST}"),
        ("$(DB_HOST)", "Write its value, or ${env:DB_HOST}"),
        ("${var.db_host}", "Write its value, or ${env:db_host}"),
        ("${db.host-name}", "Write its value, or ${env:DB_HOST_NAME}"),
        ("${{ secrets.DB_HOST }}", "Write its value, or ${env:DB_HOST}"),
        ("${{ inputs.host || 'db' }}", "Write its value"),
    ],
)
def test_a_place_of_a_template_that_nobody_filled_in_stops_the_start(value: str, repair: str) -> None:
    text = problems_with(database__hostname=value)
    assert f"database.hostname: {value} is not filled in. {repair}\n" in f"{text}\n"


@pytest.mark.parametrize("place", ["{{ env }}", "$(DB_ENV)", "${var.env}", "${{ vars.ENV }}"])
def test_a_place_within_a_value_stops_the_start_too(place: str) -> None:
    text = problems_with(topic__prefix=f"{place}-shop")
    assert f"topic.prefix: {place} is not filled in. Write its value" in text


@pytest.mark.parametrize("place", ["${var.password}", "${{ secrets.PASSWORD }}"])
def test_a_password_may_be_a_placeholder_in_braces_only_by_mistake(place: str) -> None:
    text = problems_with(database__password=place)
    assert f"database.password: {place} is not filled in" in text
    (change,) = corrections({"database.password": place}, {})
    assert (change.new, change.value) == ("database.password", with_variables(place))
    assert change.value in ("${env:password}", "${env:PASSWORD}")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("schema.history.internal.kafka.topic", "${TOPIC}"),
        ("schema.history.internal.producer.sasl.jaas.config", "${vault:kafka:login}"),
        ("errors.tolerance", "${env:NOT_SET_ANYWHERE}"),
        ("spark.jars", "${spark.home}"),
        ("database.password", "a$b{c}"),
        ("database.password", "<p>"),
        ("database.password", "$PASS"),
        ("database.password", "$(PASS)"),
        ("database.password", "{{pass}}"),
        ("database.password", "a$(b){{c}}"),
        ("database.user", "a$b(c)"),
        ("table.include.list", r"shop\.(orders|lines)$,shop\.a\$\{b\},shop\.x{2}"),
        ("table.include.list", r"shop\.\{\{a\}\},shop\.b$()"),
        ("heartbeat.action.query", "UPDATE shop.t SET a = JSON_OBJECT('b', '{\"c\": {\"d\": {}}}')"),
        ("database.user", "a<b>"),
    ],
)
def test_other_dollars_stop_nothing(name: str, value: str) -> None:
    from_properties({**LEAST, name: value}, {})


@pytest.mark.parametrize(
    ("name", "pattern", "instead"),
    [
        ("table.include.list", "users", "database.users"),
        ("table.exclude.list", "users", "database.users"),
        ("snapshot.include.collection.list", "users", "database.users"),
        ("column.exclude.list", "users.ssn", "database.users.ssn"),
        ("column.exclude.list", "ssn", "database.table.ssn"),
    ],
)
def test_a_name_without_its_database_stops_the_start_because_it_matches_nothing(
    name: str, pattern: str, instead: str
) -> None:
    changes = {"table__include__list": None, name.replace(".", "__"): pattern}
    text = problems_with(**changes)
    assert f"{name}: {pattern} matches nothing" in text
    assert f"Write {instead}" in text


@pytest.mark.parametrize("pattern", ["inventory.users", ".*users", r"inventory\.users", "[a-z]+.users"])
@pytest.mark.parametrize("name", ["table.include.list", "snapshot.include.collection.list"])
def test_a_pattern_that_may_match_is_taken(name: str, pattern: str) -> None:
    from_properties({**LEAST, name: pattern}, {})


def test_a_file_of_debezium_server_gets_one_sentence() -> None:
    given = {"debezium.sink.type": "kafka", "debezium.source.database.hostname": "db", "quarkus.log.level": "INFO"}
    with pytest.raises(ConfigError, match="has one problem") as refused:
        from_properties(given, {})
    assert "this is a file of Debezium Server" in refused.value.message


@pytest.mark.parametrize(
    ("options", "meant"),
    [
        ({"drop__tombstones": "true", "delete__handling__mode": "rewrite"}, "rewrite"),
        ({"drop__tombstones": "false"}, "delete-to-tombstone"),
        ({"delete__handling__mode": "none"}, "tombstone"),
        ({"drop__deletes": "false"}, "tombstone"),
    ],
)
def test_older_options_of_tombstones_are_refused_with_the_value_that_means_the_same(
    options: dict[str, str], meant: str
) -> None:
    text = problems_with(**_UNWRAP, **{f"transforms__u__{name}": value for name, value in options.items()})
    assert f"Set transforms.u.delete.tombstone.handling.mode={meant}, which means the same" in text


@pytest.mark.parametrize("name", ["key__converter", "value__converter"])
def test_the_older_class_of_a_converter_is_refused_with_its_present_name(name: str) -> None:
    text = problems_with(**{name: "io.debezium.converters.ByteBufferConverter"})
    assert "Write io.debezium.converters.BinaryDataConverter, its present name" in text


def test_the_older_class_of_unwrapping_is_refused_with_its_present_name() -> None:
    text = problems_with(transforms="u", transforms__u__type="io.debezium.transforms.UnwrapFromEnvelope")
    assert "Write io.debezium.transforms.ExtractNewRecordState, its present name" in text


def test_a_null_that_should_become_the_default_is_warned_of() -> None:
    given = loaded_with(**_UNWRAP, transforms__u__replace__null__with__default="true")
    assert any("replace.null.with.default=true has no effect" in warning for warning in given.warnings)
    for other in (loaded_with(**_UNWRAP), loaded_with(**_UNWRAP, transforms__u__replace__null__with__default="false")):
        assert not any("replace.null" in warning for warning in other.warnings)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("database.protocol", "jdbc:aws-wrapper:mysql"),
        ("database.jdbc.driver", "software.amazon.jdbc.Driver"),
        ("driver.wrapperPlugins", "failover,iam"),
    ],
)
def test_amazons_java_driver_is_answered_with_the_login_that_takes_its_place(name: str, value: str) -> None:
    def sentences(**more: str) -> list[str]:
        return [each for each in from_properties({**LEAST, name: value, **more}, {}).warnings if "rds-iam" in each]

    (sentence,) = sentences()
    assert sentence.startswith(f"{name}: ")
    assert "set incsnap.database.login=rds-iam" in sentence
    assert sentences(**{"incsnap.database.login": "password"}) == []


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("database.protocol", "jdbc:mysql"),
        ("database.jdbc.driver", "com.mysql.cj.jdbc.Driver"),
        ("driver.wrapperPlugins", "failover,efm2"),
    ],
)
def test_another_java_driver_has_no_login_of_amazons(name: str, value: str) -> None:
    assert not any("rds-iam" in each for each in from_properties({**LEAST, name: value}, {}).warnings)
