"""The settings of Confluent Cloud's managed connectors for MySQL, as those of Debezium's connector.

The managed connectors are `MySqlCdcSource` (Debezium 1) and `MySqlCdcSourceV2` (Debezium 2). Confluent Cloud sets the
brokers, the login to Kafka and the schema registry itself. So their values come from the environment here.
https://docs.confluent.io/cloud/current/connectors/cc-mysql-source-cdc-v2-debezium/cc-mysql-source-cdc-v2-debezium.html
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from incsnap.config.names import words
from incsnap.config.older_names import FIRST_DEFAULTS, TOMBSTONE_HANDLING
from incsnap.config.references import variable_for
from incsnap.config.secrets import is_masked

FIRST, SECOND = "MySqlCdcSource", "MySqlCdcSourceV2"
#: Classes of the managed connectors.
CLASSES = frozenset((FIRST, SECOND))
#: Class of Debezium's own connector, and of the transform behind `after.state.only`.
CONNECTOR = "io.debezium.connector.mysql.MySqlConnector"
_TRANSFORM = "after"
_UNWRAP = "io.debezium.transforms.ExtractNewRecordState"
#: Format of the managed connector -> class of the converter.
_CONVERTERS = {
    "AVRO": "io.confluent.connect.avro.AvroConverter",
    "JSON_SR": "io.confluent.connect.json.JsonSchemaConverter",
    "PROTOBUF": "io.confluent.connect.protobuf.ProtobufConverter",
    "JSON": "org.apache.kafka.connect.json.JsonConverter",
    "STRING": "org.apache.kafka.connect.storage.StringConverter",
}
_FORMATS = {"key.converter": "output.key.format", "value.converter": "output.data.format"}
_AFTER, _DECIMALS, _ENDPOINT = "after.state.only", "json.output.decimal.format", "kafka.endpoint"
_KEY, _SECRET = "kafka.api.key", "kafka.api.secret"
#: Settings of the managed connectors alone.
_OWN = (
    words(
        """
        kafka.auth.mode kafka.region kafka.service.account.id cloud.environment cloud.provider schema.context.name
        cleanup.policy auto.restart.on.user.error
        """
    )
    | {_AFTER, _DECIMALS, _ENDPOINT, _KEY, _SECRET}
    | set(_FORMATS.values())
)
#: Defaults of Confluent Cloud that Debezium does not share.
_DEFAULTS = {"time.precision.mode": "connect"}
_LOGIN = 'org.apache.kafka.common.security.plain.PlainLoginModule required username="{}" password="{}";'


def is_managed(values: Mapping[str, str]) -> bool:
    """Return True if `values` are settings of a managed connector."""
    return values.get("connector.class", "").strip() in CLASSES


def removed(values: Mapping[str, str]) -> frozenset[str]:
    """Return the names in `values` that only a managed connector has."""
    return frozenset(name for name in values if name in _OWN) if is_managed(values) else frozenset()


def replaced(values: Mapping[str, str]) -> dict[str, tuple[str, str]]:
    """Return new value and reason of each setting of a managed connector whose value changes."""
    if not is_managed(values):
        return {}
    new = {"connector.class": (CONNECTOR, "It is the class behind the managed connector.")}
    given = values.get("transforms", "").strip()
    if given and _unwraps(values):
        new["transforms"] = f"{_TRANSFORM},{given}", f"{_AFTER}=true is the transform {_TRANSFORM}."
    return new


def added(values: Mapping[str, str]) -> Iterator[tuple[str, str, str]]:
    """Yield name, value and reason of each setting that says the same to Debezium's connector.

    `values` are settings of a managed connector. A setting that `values` hold already is not among them.
    """
    for name, value, reason in _all(values):
        if name not in values:
            yield name, value, reason


def _is_first(values: Mapping[str, str]) -> bool:
    return values["connector.class"].strip() == FIRST


def _unwraps(values: Mapping[str, str]) -> bool:
    """Whether records hold the row alone. This is the default of the first connector."""
    return values.get(_AFTER, str(_is_first(values))).strip().lower() == "true"


def _all(values: Mapping[str, str]) -> Iterator[tuple[str, str, str]]:
    endpoint = values.get(_ENDPOINT, "").rpartition("://")[2] or "${env:KAFKA_BOOTSTRAP_SERVERS}"
    yield "bootstrap.servers", endpoint, "Confluent Cloud knows its own brokers."
    key, secret = (
        variable_for(setting) if is_masked(values.get(setting, "*")) else values[setting] for setting in (_KEY, _SECRET)
    )
    login = "An API key is a login to Kafka."
    yield "producer.security.protocol", "SASL_SSL", login
    yield "producer.sasl.mechanism", "PLAIN", login
    yield "producer.sasl.jaas.config", _LOGIN.format(key, secret), login
    for converter, setting in _FORMATS.items():
        yield from _converter(converter, setting, values.get(setting, "JSON").strip().upper(), values)
    if _unwraps(values):
        yield "transforms", _TRANSFORM, f"{_AFTER}=true is this transform."
        yield f"transforms.{_TRANSFORM}.type", _UNWRAP, f"{_AFTER}=true is this transform."
        mode = f"transforms.{_TRANSFORM}.{TOMBSTONE_HANDLING}"
        yield mode, "delete-to-tombstone", "A deletion becomes a tombstone."
    is_first = _is_first(values)
    for name, value in (_DEFAULTS | (FIRST_DEFAULTS if is_first else {})).items():
        yield name, value, "It is the managed connector's default."
    if values.get("cleanup.policy"):
        reason = "Topics are created with it."
        yield "topic.creation.default.cleanup.policy", values["cleanup.policy"], reason
    yield "topic.creation.default.replication.factor", "3", "The managed connector creates topics so."
    yield "topic.creation.default.partitions", "1", "The managed connector creates topics so."


def _converter(converter: str, setting: str, given: str, values: Mapping[str, str]) -> Iterator[tuple[str, str, str]]:
    """Yield the settings of one converter. An unknown format becomes the class, so the start refuses the format."""
    yield converter, _CONVERTERS.get(given, given), f"{setting}={given} is this converter."
    if given == "JSON":
        yield f"{converter}.schemas.enable", "false", "The managed connector writes JSON without schemas."
    if given in ("AVRO", "JSON_SR", "PROTOBUF"):
        reason = "Confluent Cloud knows its own schema registry."
        yield f"{converter}.schema.registry.url", "${env:SCHEMA_REGISTRY_URL}", reason
        yield f"{converter}.basic.auth.credentials.source", "USER_INFO", reason
        yield f"{converter}.basic.auth.user.info", "${env:SCHEMA_REGISTRY_KEY_AND_SECRET}", reason
    if converter == "value.converter" and given in ("JSON", "JSON_SR") and values.get(_DECIMALS):
        yield f"{converter}.decimal.format", values[_DECIMALS].upper(), f"{_DECIMALS} is this option."
