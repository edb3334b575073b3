"""Settings: Debezium's names in, typed values out; every problem at once; secrets nowhere."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest

from incsnap.config.load import from_properties, load, read
from incsnap.config.servers import RegistrySettings
from incsnap.config.settings import FailureHandling, Formats, Settings
from incsnap.envelope.column_rules import ColumnRules
from incsnap.envelope.envelope_settings import FormatChoice
from incsnap.errors import ConfigError
from incsnap.tables import TableId
from incsnap.types.modes import CHOICES, Modes
from tests.support.job_settings import LEAST, loaded_with, problems_with


def test_the_least_settings_have_debeziums_defaults() -> None:
    loaded = loaded_with()
    settings = loaded.settings
    assert loaded.warnings == ()
    assert (settings.mysql.port, settings.mysql.ssl_mode) == (3306, "preferred")
    assert settings.topic_delimiter == "."
    assert settings.tombstones_on_delete
    assert settings.modes == Modes()
    assert settings.columns == ColumnRules()
    assert settings.formats == Formats(key=FormatChoice("json", False), value=FormatChoice("json", False))
    assert settings.failures == FailureHandling(processing="fail", converting="warn", inconsistent_schema="fail")
    assert settings.skipped_operations == {"t"}
    assert not settings.transaction_metadata
    assert not settings.include_query
    assert settings.include_schema_changes
    assert settings.signals.kafka_topic == "shop-signal"
    assert settings.signals.kafka_bootstrap_servers == "k1:9092,k2:9092"
    assert settings.mysql.connect_timeout_seconds == 30.0


def test_the_server_id_stays_the_same_over_restarts_and_differs_between_jobs() -> None:
    assert loaded_with().settings.mysql.server_id == loaded_with().settings.mysql.server_id
    assert loaded_with().settings.mysql.server_id != loaded_with(topic__prefix="other").settings.mysql.server_id
    assert loaded_with(database__server__id="7").settings.mysql.server_id == 7


def test_all_problems_are_listed_at_once_each_with_name_value_and_what_is_allowed() -> None:
    text = problems_with(
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
    ("name", "value", "message"),
    [
        ("topic.prefix", "a b", "a name of at most 249 letters"),
        ("database.port", "70000", "from 1 to 65535"),
        ("database.port", "3_306", "whole number"),
        ("snapshot.mode", "custom", "which does not run here. Set initial or"),
        (
            "snapshot.mode",
            "configuration_based",
            "no mode of incsnap with these settings. neither snapshot.mode.",
        ),
        (
            "snapshot.mode",
            "sometimes",
            "one of: initial, initial_only, when_needed, when_needed_no_data, always, no_data, recovery",
        ),
        ("snapshot.include.collection.list", "db.(t", "not a regular expression"),
        ("snapshot.select.statement.overrides", "orders", "a list of tables as database.table"),
        ("incsnap.start.gtid.set", "binlog.000001", "a GTID set"),
        ("incsnap.start.binlog.position", "154", "has no effect without incsnap.start.binlog.file"),
        ("time.precision.mode", "adaptive", "one of: adaptive_time_microseconds, connect, isostring"),
        ("binary.handling.mode", "octal", "one of: bytes, base64, base64-url-safe, hex"),
        ("bigint.unsigned.handling.mode", "signed", "one of: long, precise"),
        ("value.converter", "io.confluent.connect.avro.AvroConverter", "value.converter.schema.registry.url: missing"),
        (
            "value.converter",
            "io.apicurio.registry.utils.converter.AvroConverter",
            "value.converter.apicurio.registry.url: missing",
        ),
        ("key.converter", "AvroConverter", "key.converter.schema.registry.url: missing"),
        ("value.converter", "org.apache.kafka.connect.storage.StringConverter", "there is no EventRouter"),
        (
            "value.converter",
            "org.apache.kafka.connect.converters.LongConverter",
            "one of: org.apache.kafka.connect.json",
        ),
        ("value.converter.schemas.enable", "perhaps", "true or false"),
        ("skipped.operations", "u,x", "none, or a list of c, u, d and t"),
        ("skipped.operations", "none,t", "none, or a list of c, u, d and t"),
        ("event.processing.failure.handling.mode", "log", "one of: fail, warn, skip, ignore"),
        ("event.converting.failure.handling.mode", "null", "one of: fail, warn, skip"),
        ("inconsistent.schema.handling.mode", "guess", "one of: fail, warn, skip"),
        ("field.name.adjustment.mode", "json", "one of: none, avro, avro_unicode"),
        ("schema.name.adjustment.mode", "json", "one of: none, avro, avro_unicode"),
        ("sanitize.field.names", "yes", "true or false"),
        ("topic.naming.strategy", "com.example.Mine", "one of: io.debezium.schema.DefaultTopicNamingStrategy"),
        ("provide.transaction.metadata", "1", "true or false"),
        ("include.query", "1", "true or false"),
        ("include.schema.changes", "1", "true or false"),
        ("table.include.list", "db.(t", "not a regular expression"),
        ("signal.data.collection", "signals", "of the form database.table"),
        ("signal.enabled.channels", "kafka,pigeon", "'kafka,pigeon' is not a list of: source, kafka, file"),
        ("signal.kafka.topic", "a topic", "a name of at most 249 letters"),
        ("signal.kafka.bootstrap.servers", "k:port", "host:port"),
        ("notification.enabled.channels", "sink", "notification.sink.topic.name: missing"),
        ("incremental.snapshot.chunk.size", "0", "from 1 to"),
        ("max.batch.size", "many", "from 1 on"),
        ("topic.creation.default.partitions", "0", "from 1 on, or -1"),
        ("topic.creation.default.partitions", "many", "a whole number from -1 to 100000"),
        ("producer.acks", "1", "acks=all"),
        ("producer.enable.idempotence", "false", "exactly once needs"),
        ("producer.transactional.id", "mine", "not free to choose"),
        ("producer.ssl.truststore.location", "/ca.jks", "convert a Java key store by keytool -exportcert -rfc"),
        ("database.ssl.truststore", "/ca.jks", "convert a Java key store by keytool -exportcert -rfc"),
        ("database.ssl.keystore", "/client.jks", "-deststoretype PKCS12, and then"),
        ("database.ssl.keystore", "/client.p12", "openssl pkcs12 -in client.p12 -out client.pem"),
        ("max.batch.size", "0", "from 1 on"),
        ("connector.class", "MySqlCdcSourceV2", "a managed connector of Confluent Cloud"),
        ("producer.override.sasl.client.callback.handler.class", "x.Handler", "it names a Java class"),
        ("database.password", "${env:NOPE}", "no variable NOPE"),
        ("database.password", "${vault:x:y}", "'vault' is not known"),
        ("database.password", "${file:/no/such/file:key}", "/no/such/file cannot be read"),
        ("database.password", "${file:key}", "write it as ${file:PATH:KEY}"),
    ],
)
def test_a_wrong_value_is_refused_with_a_reason(name: str, value: str, message: str) -> None:
    with pytest.raises(ConfigError) as raised:
        from_properties({**LEAST, name: value}, {})
    assert "one problem" in str(raised.value)
    assert message in str(raised.value)


def test_include_and_exclude_of_one_kind_exclude_each_other() -> None:
    assert "not both" in problems_with(table__include__list="a.b", table__exclude__list="a.c")


def test_references_are_resolved_from_the_environment_and_from_files(tmp_path: Path) -> None:
    secrets = tmp_path / "secrets.properties"
    secrets.write_text("mysql.user=repl\n")
    (tmp_path / "prefix").write_text("shop")
    settings = loaded_with(
        database__password="${env:PASS}",
        database__port="${env:PORT}",
        database__user=f"${{file:{secrets}:mysql.user}}",
        topic__prefix=f"${{directory:{tmp_path}:prefix}}",
        checkpoint__location="/data/${env:PORT}/x",
    ).settings
    assert settings.mysql.password.get_secret_value() == "s3cret"
    assert (settings.mysql.port, settings.mysql.user, settings.topic_prefix) == (3307, "repl", "shop")
    assert settings.checkpoint_location == "/data/3307/x"


@pytest.mark.parametrize(
    "location", ["file:/data/x", "file:///data/x", "file:////data/x", "file://localhost/data/x", "FILE:/data/x"]
)
def test_each_form_of_a_local_uri_names_one_checkpoint(location: str) -> None:
    assert loaded_with(checkpoint__location=location).settings.checkpoint_location == "file:///data/x"


@pytest.mark.parametrize("location", ["file:///data/x#1", "file:/data/x?y", "file:data/x", "file://elsewhere/data/x"])
def test_a_local_uri_whose_folder_is_unclear_is_refused(location: str) -> None:
    assert "is not the file: URI of a folder of this machine" in problems_with(checkpoint__location=location)


def test_a_number_in_a_file_of_its_own_may_end_with_a_newline(tmp_path: Path) -> None:
    (tmp_path / "port").write_text("3307\n")
    assert loaded_with(database__port=f"${{directory:{tmp_path}:port}}").settings.mysql.port == 3307


def test_a_reference_to_an_empty_value_is_an_empty_value(tmp_path: Path) -> None:
    (tmp_path / "nothing").write_text("")
    nothing = f"${{directory:{tmp_path}:nothing}}"
    loaded = loaded_with(signal__data__collection=nothing, signal__enabled__channels="source,kafka")
    assert loaded.settings.signals.channels == ("kafka",)
    start = loaded_with(incsnap__start__gtid__set=nothing).settings.start
    assert (start.is_given, start.gtid_set) == (True, "")


def test_secrets_are_in_no_repr_and_in_no_error() -> None:
    loaded = from_properties(
        {
            **LEAST,
            "database.password": "s3cret",
            "producer.sasl.password": "s3cret",
            "spark.token": "s3cret",
            "value.converter": "io.confluent.connect.avro.AvroConverter",
            "value.converter.schema.registry.url": "http://r:8081",
            "value.converter.basic.auth.user.info": "u:s3cret",
            "column.mask.hash.SHA-256.with.salt.s3cret": "db.t.c",
        },
        {},
    )
    settings = loaded.settings
    for shown in (repr(settings), str(settings), settings.model_dump_json(), repr(settings.mysql), str(settings.kafka)):
        assert "s3cret" not in shown
    assert "s3cret" not in problems_with(database__port="${env:PASS}")
    assert "s3cret" not in problems_with(producer__sasl__jaas__config="s3cret")
    assert "s3cret" not in problems_with(**{"column.mask.hash.SHA-257.with.salt.s3cret": "db.t.c"})
    assert "s3cret" not in problems_with(**{"column.mask.hash.SHA-256.with.salt.s3cret": "db.("})


def test_settings_survive_the_way_to_a_worker_with_their_secrets() -> None:
    settings = loaded_with(
        database__password="${env:PASS}",
        producer__sasl__password="s3cret",
        signal__data__collection="a.b",
        signal__enabled__channels="source",
        table__include__list="a.c",
        column__exclude__list="a.c.d,a.c.e",
        column__mask__with__3__chars="a.c.f",
        column__mask__hash__MD5__with__salt__pepper="a.c.g",
        message__key__columns="a.c:x,y",
        skipped__operations="u,d",
        value__converter="io.confluent.connect.avro.AvroConverter",
        value__converter__schema__registry__url="http://r:8081",
        value__converter__basic__auth__user__info="u:s3cret",
    ).settings
    again = Settings.from_json(settings.to_json())
    assert again == settings == pickle.loads(pickle.dumps(settings))
    assert again.mysql.password.get_secret_value() == "s3cret"
    assert again.kafka.producer["sasl.password"] == "s3cret"
    assert again.tables.signal_table == TableId("a", "b")
    assert again.columns.transforms[0].transform.salt == "pepper"
    assert hash(again.columns) == hash(settings.columns)
    assert again.formats.value_registry.client == {"basic.auth.user.info": "u:s3cret"}


@pytest.mark.parametrize(
    ("setting", "field"),
    [
        ("decimal.handling.mode", "decimal_handling"),
        ("time.precision.mode", "time_precision"),
        ("binary.handling.mode", "binary_handling"),
        ("bigint.unsigned.handling.mode", "bigint_unsigned"),
    ],
)
def test_every_mode_of_types_is_taken(setting: str, field: str) -> None:
    for choice in CHOICES[field]:
        assert getattr(loaded_with(**{setting: choice.upper()}).settings.modes, field) == choice


@pytest.mark.parametrize(
    ("setting", "skipped"), [("none", ""), ("t", "t"), ("u,d", "ud"), ("C, U ,d,t", "cudt"), (None, "t"), ("", "t")]
)
def test_skipped_operations_are_none_or_a_list(setting: str | None, skipped: str) -> None:
    assert loaded_with(skipped__operations=setting).settings.skipped_operations == frozenset(skipped)


@pytest.mark.parametrize("mode", ["fail", "warn", "skip"])
def test_each_kind_of_failure_has_its_mode(mode: str) -> None:
    names = ("event.processing.failure", "event.converting.failure", "inconsistent.schema")
    settings = from_properties({**LEAST, **{f"{name}.handling.mode": mode for name in names}}, {}).settings

    assert settings.failures == FailureHandling(processing=mode, converting=mode, inconsistent_schema=mode)


def test_ignoring_an_event_is_an_older_word_for_skipping_it() -> None:
    names = ("event.processing.failure", "inconsistent.schema")
    settings = from_properties({**LEAST, **{f"{name}.handling.mode": "ignore" for name in names}}, {}).settings

    assert settings.failures == FailureHandling(processing="skip", converting="warn", inconsistent_schema="skip")


@pytest.mark.parametrize(
    ("converters", "schemas"),
    [
        ({}, False),
        ({"value.converter": "org.apache.kafka.connect.json.JsonConverter"}, True),
        ({"value.converter": "JsonConverter", "value.converter.schemas.enable": "false"}, False),
        ({"value.converter.schemas.enable": "true"}, True),
    ],
)
def test_schemas_are_on_where_kafka_connects_converter_is_named(converters: dict[str, str], schemas: bool) -> None:
    settings = from_properties({**LEAST, **converters}, {}).settings

    assert settings.formats.value == FormatChoice("json", schemas)
    assert settings.formats.key == FormatChoice("json", False)


def test_an_avro_converter_passes_its_other_settings_to_the_registry_client() -> None:
    avro = {
        "value.converter": "io.confluent.connect.avro.AvroConverter",
        "value.converter.schema.registry.url": "https://r:8081",
        "value.converter.basic.auth.user.info": "u:p",
        "schema.name.adjustment.mode": "avro",
    }
    settings = from_properties({**LEAST, **avro}, {}).settings

    assert settings.formats.key == FormatChoice("json", False)
    assert settings.formats.value.kind == "avro"
    assert settings.formats.value_registry == RegistrySettings(
        url="https://r:8081", client={"basic.auth.user.info": "u:p"}
    )
    assert settings.formats.schema_names == "avro"
    with pytest.raises(ConfigError, match="http://host:port"):
        from_properties({**LEAST, **avro, "value.converter.schema.registry.url": "r:8081"}, {})


@pytest.mark.parametrize(
    ("converter", "option", "url"),
    [
        *(
            (converter, option, url)
            for converter, option in (
                ("io.confluent.connect.avro.AvroConverter", "schema.registry.url"),
                ("io.apicurio.registry.utils.converter.AvroConverter", "apicurio.registry.url"),
            )
            for url in ("http://u:p-1/p-2@h/apis/registry/v2", "h://u:p-1@p-2@h/other")
        ),
        (
            "io.apicurio.registry.utils.converter.AvroConverter",
            "apicurio.registry.url",
            "http://u:p-1@p-2@h/other",
        ),
    ],
)
def test_a_wrong_address_of_a_registry_shows_no_password(converter: str, option: str, url: str) -> None:
    given = {"value.converter": converter, f"value.converter.{option}": url}
    with pytest.raises(ConfigError, match=f"{option}.* not of the form http://host:port") as refused:
        from_properties({**LEAST, **given}, {})
    assert "p-1" not in str(refused.value)
    assert "p-2" not in str(refused.value)
    assert ("%2F" in refused.value.message) == ("/p-2" in url)


_PROTOBUF = {
    "value.converter": "io.confluent.connect.protobuf.ProtobufConverter",
    "value.converter.schema.registry.url": "https://r:8081",
    "value.converter.basic.auth.user.info": "u:p",
}


def test_a_protobuf_converter_has_its_options_and_passes_the_others_to_the_registry_client() -> None:
    styled = {"optional.for.nullables": "true", "wrapper.for.nullables": "true", "scrub.invalid.names": "true"}
    options = {**styled, "enhanced.protobuf.schema.support": "true", "skip.known.types": "true"}
    loaded = from_properties({**LEAST, **_PROTOBUF, **{f"value.converter.{n}": v for n, v in options.items()}}, {})

    assert loaded.settings.formats.value == FormatChoice("protobuf", optional=True, wrapped=True, scrubbed=True)
    assert loaded.settings.formats.value_registry == RegistrySettings(
        url="https://r:8081", client={"basic.auth.user.info": "u:p"}
    )
    assert loaded.warnings == ()
    short = from_properties({**LEAST, **_PROTOBUF, "value.converter": "ProtobufConverter"}, {}).settings
    assert short.formats.value == FormatChoice("protobuf")


def test_an_option_that_no_protobuf_converter_has_is_named_in_a_warning() -> None:
    (warning,) = from_properties({**LEAST, **_PROTOBUF, "value.converter.optional.for.all": "true"}, {}).warnings
    assert warning == "Unknown settings of value.converter, without effect: value.converter.optional.for.all"


@pytest.mark.parametrize(
    ("option", "value", "word"),
    [
        ("schema.registry.url", "", "schema.registry.url: missing"),
        ("optional.for.nullables", "perhaps", "true or false"),
        ("skip.known.types", "false", "knows all files that schemas import"),
        ("value.subject.name.strategy", "RecordNameStrategy", "TopicNameStrategy"),
    ],
)
def test_options_that_protobuf_cannot_obey_are_refused(option: str, value: str, word: str) -> None:
    with pytest.raises(ConfigError, match=word):
        from_properties({**LEAST, **_PROTOBUF, f"value.converter.{option}": value}, {})


def test_debeziums_default_strategy_of_topic_names_is_taken() -> None:
    assert loaded_with(topic__naming__strategy="io.debezium.schema.DefaultTopicNamingStrategy").warnings == ()


def test_control_records_are_optional() -> None:
    settings = loaded_with(
        provide__transaction__metadata="true",
        topic__transaction="tx",
        include__query="true",
        include__schema__changes="false",
    ).settings

    assert settings.transaction_metadata
    assert settings.transaction_topic == "tx"
    assert settings.include_query
    assert not settings.include_schema_changes


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
    lines = [f"{name} = {value}" for name, value in LEAST.items()]
    file.write_text("\n".join(["# a job", *lines, "table.include.list=a\\\\.b,\\", "   a\\\\.c"]))
    assert read(file).settings.tables.table_include == (r"a\.b", r"a\.c")


_OF_APICURIO = {
    "value.converter": "io.apicurio.registry.utils.converter.AvroConverter",
    "value.converter.apicurio.registry.url": "http://r:8080/apis/registry/v2",
}


@pytest.mark.parametrize(
    ("options", "frame"),
    [
        ({}, "globalId"),
        ({"use-id": "contentId"}, "contentId"),
        ({"headers.enabled": "false"}, "wide"),
        ({"headers.enabled": "false", "as-confluent": "true"}, ""),
        ({"headers.enabled": "false", "id-handler": "io.apicurio.registry.serde.Legacy4ByteIdHandler"}, ""),
        ({"url": "http://r:8080/apis/registry/v3", "headers.enabled": "true", "use-id": "contentId"}, "contentId"),
    ],
)
def test_apicurios_converter_has_its_ids_where_the_options_say(options: dict[str, str], frame: str) -> None:
    given = {**_OF_APICURIO, **{f"value.converter.apicurio.registry.{n}": v for n, v in options.items()}}
    assert from_properties({**LEAST, **given}, {}).settings.formats.value == FormatChoice("avro", frame=frame)


@pytest.mark.parametrize(
    ("name", "value", "problem"),
    [
        ("registry.url", "http://r:8080/apis/ccompat/v7", "not of the form http://host:port/apis/registry/v2"),
        (
            "registry.url",
            "http://r:8080/apis/registry/v3",
            "headers.enabled and apicurio.registry.use-id must be given",
        ),
        ("registry.id-handler", "my.Handler", "known are"),
        ("registry.use-id", "contentHash", "neither globalId nor contentId"),
        ("registry.avro.encoding", "JSON", "BINARY is"),
        ("registry.artifact-resolver-strategy", "my.Strategy", "TopicIdStrategy is"),
        ("registry.headers.value.globalId.name", "mine", "is not known"),
        ("registry.request.ssl.truststore.location", "a.jks", "SSL_CERT_FILE"),
        ("registry.auto-register", "perhaps", "neither true nor false"),
        ("auth.service.token.endpoint", "http://k/token", "belong together"),
    ],
)
def test_what_apicurios_converter_does_not_obey_is_refused(name: str, value: str, problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        from_properties({**LEAST, **_OF_APICURIO, f"value.converter.apicurio.{name}": value}, {})


def test_unknown_options_of_apicurios_converters_are_told() -> None:
    loaded = from_properties({**LEAST, **_OF_APICURIO, "value.converter.apicurio.registry.whatever": "1"}, {})
    assert any("whatever" in warning for warning in loaded.warnings)


_EVENTS = {"value.converter": "io.debezium.converters.CloudEventsConverter"}


def test_cloud_events_have_their_options() -> None:
    assert from_properties({**LEAST, **_EVENTS}, {}).settings.formats.value == FormatChoice(
        "cloudevents", True, extended=True
    )
    off = {"value.converter.json.schemas.enable": "false", "value.converter.extension.attributes.enable": "false"}
    assert from_properties({**LEAST, **_EVENTS, **off}, {}).settings.formats.value == FormatChoice("cloudevents")


#: The default of Debezium 3.6.1, and that of its older releases.
_OF_EVENTS = "value,id:generate,type:generate,traceparent:header,dataSchemaName:generate"


@pytest.mark.parametrize(
    "source", [_OF_EVENTS, _OF_EVENTS.replace(",", ", "), "value,id:generate,type:generate", f"{_OF_EVENTS[:-8]}header"]
)
def test_debeziums_default_source_of_metadata_may_be_written_out(source: str) -> None:
    written = from_properties({**LEAST, **_EVENTS, "value.converter.metadata.source": source}, {})
    left_out = from_properties({**LEAST, **_EVENTS}, {})

    assert (written.settings.formats, written.warnings) == (left_out.settings.formats, left_out.warnings)


@pytest.mark.parametrize(
    ("more", "problem"),
    [
        ({"key.converter": "CloudEventsConverter"}, "writes only values"),
        ({"value.converter.metadata.source": "value,subject:generate"}, "metadata in headers is not read"),
        (
            {
                "value.converter.metadata.source": "value,dataSchemaName:header",
                "value.converter.schema.data.name.source.header.enable": "true",
            },
            "metadata in headers is not read",
        ),
        ({"value.converter.serializer.type": "avro"}, "events in Avro are not written"),
        ({"value.converter.data.serializer.type": "avro"}, "data in Avro is not written"),
        ({"value.converter.metadata.source": "header"}, "metadata in headers is not read"),
        ({"value.converter.metadata.source": "value,id:header"}, "metadata in headers is not read"),
        ({"value.converter.opentelemetry.tracing.attributes.enable": "true"}, "no traces"),
        ({"value.converter.schema.data.name": "D"}, "not given"),
        ({"value.converter.json.decimal.format": "NUMERIC"}, "decimals are base64"),
        (
            {"transforms": "u", "transforms.u.type": "io.debezium.transforms.ExtractNewRecordState"},
            "needs Debezium's envelope",
        ),
    ],
)
def test_what_cloud_events_cannot_be_is_refused(more: dict[str, str], problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        from_properties({**LEAST, **_EVENTS, **more}, {})
