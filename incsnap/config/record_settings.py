"""Settings of records: types, formats and names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from urllib.parse import urlsplit

from incsnap.config import apicurio_settings as apicurio
from incsnap.config.declarations.kinds import FLAG, one_of
from incsnap.config.older_names import VALUES
from incsnap.config.reader import NULLS, SettingsReader
from incsnap.config.registry_settings import client_settings
from incsnap.config.servers import RegistrySettings
from incsnap.config.settings import Formats
from incsnap.envelope.envelope_settings import FormatChoice
from incsnap.errors import ConfigError
from incsnap.types.modes import Modes

#: Field of `Modes` -> the setting that it has.
_MODES = {
    "decimal_handling": "decimal.handling.mode",
    "time_precision": "time.precision.mode",
    "binary_handling": "binary.handling.mode",
    "bigint_unsigned": "bigint.unsigned.handling.mode",
    "time_adjuster": "enable.time.adjuster",
    "converting": "event.converting.failure.handling.mode",
    "debezium": "incsnap.debezium.version",
}
_STRATEGIES = ("DefaultTopicNamingStrategy", "DefaultUnicodeTopicNamingStrategy")
_CONVERTERS = {
    "org.apache.kafka.connect.json.JsonConverter": "json",
    "io.confluent.connect.avro.AvroConverter": "avro",
    "io.confluent.connect.json.JsonSchemaConverter": "json-schema",
    "io.confluent.connect.protobuf.ProtobufConverter": "protobuf",
    # Behind Confluent's class, which the name AvroConverter alone stands for.
    "io.apicurio.registry.utils.converter.AvroConverter": "avro",
    "io.apicurio.registry.utils.converter.ExtJsonConverter": "ext-json",
    "io.debezium.converters.CloudEventsConverter": "cloudevents",
    # Only for outbox events and for keys, see `outbox.problems`.
    "org.apache.kafka.connect.storage.StringConverter": "text",
    "org.apache.kafka.connect.converters.ByteArrayConverter": "bytes",
    "io.debezium.converters.BinaryDataConverter": "bytes",
}
#: Option of BinaryDataConverter: the converter for values that are not bytes.
_DELEGATE = "delegate.converter.type"
_OF_JSON = (NULLS, "schemas.enable", "schemas.cache.size", "decimal.format")
#: Options of the JSON Schema converter that are no options of the registry's client.
_OF_JSON_SCHEMAS = (
    *("decimal.format", "object.additional.properties", "json.oneof.for.nullables", "json.fail.invalid.schema"),
    *("use.optional.for.nonrequired", "generalized.sum.type.support", "json.default.property.inclusion"),
)
#: Options of the Protobuf converter that shape schemas and records, and the field of `FormatChoice` that each has.
_STYLES = {
    "optional.for.nullables": "optional",
    "wrapper.for.nullables": "wrapped",
    "scrub.invalid.names": "scrubbed",
}
#: Options of the Protobuf converter that make no difference: they concern readers, unions, and imported files that the
#: registry does not know. All files that our schemas import are known to it.
_IDLE_OF_PROTOBUF = (
    *("enhanced.protobuf.schema.support", "generalized.sum.type.support", "int.for.enums", "optional.for.proto2"),
    *("wrapper.for.raw.primitives", "generate.struct.for.nulls", "generate.index.for.unions", "flatten.unions"),
    *("reference.lookup.only", "reference.subject.name.strategy"),
)
_KNOWN_TYPES = "skip.known.types"
#: Options of CloudEventsConverter that have one value here, and why.
_OF_CLOUD_EVENTS = {
    "serializer.type": ("json", "events in Avro are not written"),
    "data.serializer.type": ("json", "data in Avro is not written"),
    "opentelemetry.tracing.attributes.enable": ("false", "records have no traces"),
    "json.decimal.format": ("base64", "decimals are base64; set decimal.handling.mode for others"),
    "schema.data.name": ("", "the schema of data has Debezium's name"),
}
#: Fields of `metadata.source` that are generated here.
_GENERATED = ("id", "type", "traceparent", "dataSchemaName")
#: Fields of `metadata.source` that Debezium's class reads from a header only if another option is on, and this option.
#: `traceparent:header` is in Debezium's default. Its option is refused by `_OF_CLOUD_EVENTS`.
_FROM_HEADER = {
    "traceparent": "opentelemetry.tracing.attributes.enable",
    "dataSchemaName": "schema.data.name.source.header.enable",
}
#: Option of converters with a registry. The other options go to the registry's client.
_URL = "schema.registry.url"


def modes(reader: SettingsReader) -> Modes:
    """Return the modes of types."""
    return Modes(**{field: reader[name] for field, name in _MODES.items()})


def formats(reader: SettingsReader) -> Formats:
    """Return the formats of keys and values, with their schema registries."""
    key, key_registry = _format(reader, "key.converter")
    value, value_registry = _format(reader, "value.converter")
    return Formats.read(reader, key=key, value=value, key_registry=key_registry, value_registry=value_registry)


def _format(reader: SettingsReader, name: str) -> tuple[FormatChoice, RegistrySettings]:
    """Return format and registry of the converter setting `name`.

    Without a converter the format is JSON without schemas. With Connect's JSON converter schemas are on by default.
    """
    given: str = reader[name]
    options = reader.prefixed(f"{name}.")
    kind = _kind(given)
    if given in VALUES[name]:
        reader.problem(name, f"a class of Debezium 3. Write {VALUES[name][given]}, its present name")
        return FormatChoice(), RegistrySettings()
    if not kind:
        reader.problem(name, f"one of: {', '.join(_CONVERTERS)}")
        return FormatChoice(), RegistrySettings()
    delegate = f"{name}.{_DELEGATE}"
    if given.endswith("BinaryDataConverter") and reader.given(delegate):
        if _kind(reader.text(delegate)) != "json":
            reader.problem(delegate, "org.apache.kafka.connect.json.JsonConverter, the only one here")
        return replace(_json(reader, delegate, schemas=True), raw=True), RegistrySettings()
    if kind in ("text", "bytes"):
        if options:
            listed = ", ".join(f"{name}.{one}" for one in options)
            reader.warnings.append(f"Settings without effect, because {name} writes {kind}: {listed}")
        return FormatChoice(kind), RegistrySettings()
    if kind == "cloudevents":
        return _cloud_events(reader, name), RegistrySettings()
    if kind == "json":
        return _json(reader, name, schemas=bool(given)), RegistrySettings()
    if "apicurio" in given.lower() or kind == "ext-json":
        return _apicurio(reader, name, kind, options)
    url = reader.required(f"{name}.{_URL}", "the address of the schema registry, http://host:port")
    # The registry's client asks the next address if one does not answer.
    for address in url.split(",") if url else ():
        if not _check_address(reader, f"{name}.{_URL}", address.strip()):
            break
    of_kind = {"json-schema": _OF_JSON_SCHEMAS, "protobuf": (*_STYLES, *_IDLE_OF_PROTOBUF, _KNOWN_TYPES)}
    own = (_URL, "schemas.enable", *of_kind.get(kind, ()))
    client = {option: value for option, value in options.items() if option not in own}
    _check_options(reader, name, client)
    choice = FormatChoice(kind)
    if kind == "json-schema":
        decimals = reader.read(f"{name}.decimal.format", one_of("base64", "numeric"), "base64")
        is_open = reader.read(f"{name}.object.additional.properties", FLAG, "true")
        if not reader.read(f"{name}.json.oneof.for.nullables", FLAG, "true"):
            reader.problem(f"{name}.json.oneof.for.nullables", "true: a field that may be null is a oneOf")
        choice = FormatChoice(kind, decimals=decimals, closed=not is_open)
    elif kind == "protobuf":
        choice = _protobuf(reader, name, options)
    return choice, RegistrySettings(url=url, client=client)


def _check_address(reader: SettingsReader, name: str, url: str) -> bool:
    """Return True if `url` is an address. Otherwise add a problem for the setting `name`.

    A `/` in a password ends the address. A client's error would then show a part of the password as the port.
    """
    try:
        if url.startswith(("http://", "https://")) and urlsplit(url).port != 0:
            return True
    except ValueError:
        reader.problem(name, "of the form http://host:port, with %2F for a / in a password")
        return False
    reader.problem(name, "of the form http://host:port")
    return False


def _apicurio(
    reader: SettingsReader, name: str, kind: str, options: Mapping[str, str]
) -> tuple[FormatChoice, RegistrySettings]:
    """Return format and registry of one of Apicurio's converters."""
    url = reader.required(f"{name}.{apicurio.URL}", "the address of the registry, http://host:port/apis/registry/v2")
    if not url or not _check_address(reader, f"{name}.{apicurio.URL}", url):
        return FormatChoice(), RegistrySettings()
    own = _OF_JSON if kind == "ext-json" else ()
    client = {option: value for option, value in options.items() if option not in own}
    try:
        settings = apicurio.apicurio_settings(client, avro=kind == "avro")
    except ConfigError as error:
        reader.problems.append(f"{name}: {error.message}. {error.hint}".rstrip(". "))
        return FormatChoice(), RegistrySettings()
    reader.idle |= {f"{name}.{each}": "it makes no difference to records" for each in settings.idle}
    unknown = sorted(f"{name}.{each}" for each in settings.unknown)
    reader.idle |= dict.fromkeys(unknown, "no option of Apicurio's converters")
    if unknown:
        reader.warnings.append(f"Unknown settings of {name}, without effect: {', '.join(unknown)}")
    known = {option: value for option, value in client.items() if option not in (*settings.idle, *settings.unknown)}
    registry = RegistrySettings(url=settings.url, client=known)
    if kind == "avro":
        return FormatChoice("avro", frame=settings.frame), registry
    decimals = reader.read(f"{name}.decimal.format", one_of("base64", "numeric"), "base64")
    return FormatChoice("ext-json", decimals=decimals), registry


def _cloud_events(reader: SettingsReader, name: str) -> FormatChoice:
    """Return the format that the options of CloudEventsConverter ask for."""
    if name == "key.converter":
        reader.problem(name, "another converter: CloudEventsConverter writes only values")
    for option, (value, why) in _OF_CLOUD_EVENTS.items():
        if (reader.text(f"{name}.{option}") or value).lower() != value:
            reader.problem(f"{name}.{option}", f"{value or 'not given'}: {why}")
    first, *sources = (reader.text(f"{name}.metadata.source") or "value").replace(" ", "").split(",")
    generated = {f"{field}:generate" for field in _GENERATED}
    for field, option in _FROM_HEADER.items():
        if reader.text(f"{name}.{option}").lower() != "true":
            generated.add(f"{field}:header")
    if first != "value" or not generated.issuperset(sources):
        reader.problem(f"{name}.metadata.source", "value, or Debezium's default: metadata in headers is not read")
    own = (*_OF_CLOUD_EVENTS, "metadata.source", "json.schemas.enable", "extension.attributes.enable")
    others = sorted(f"{name}.{option}" for option in reader.prefixed(f"{name}.") if option not in own)
    reader.idle |= dict.fromkeys(others, "it makes no difference to CloudEvents in JSON")
    return FormatChoice(
        "cloudevents",
        reader.read(f"{name}.json.schemas.enable", FLAG, "true"),
        extended=reader.read(f"{name}.extension.attributes.enable", FLAG, "true"),
    )


def _protobuf(reader: SettingsReader, name: str, options: Mapping[str, str]) -> FormatChoice:
    """Return the Protobuf format that the options of `name` ask for."""
    idle = [option for option in _IDLE_OF_PROTOBUF if option in options]
    reader.idle |= {f"{name}.{option}": "it makes no difference to records" for option in idle}
    if not reader.read(f"{name}.{_KNOWN_TYPES}", FLAG, "true"):
        reader.problem(f"{name}.{_KNOWN_TYPES}", "true: the registry knows all files that schemas import")
    styles = {field: reader.read(f"{name}.{option}", FLAG, "false") for option, field in _STYLES.items()}
    return FormatChoice("protobuf", **styles)


def _check_options(reader: SettingsReader, name: str, options: Mapping[str, str]) -> None:
    """Add a problem for each unsupported option of the converter `name`, and one warning of unknown options."""
    unknown = []
    for option, value in options.items():
        try:
            settings = client_settings("", {option: value})
        except ConfigError as error:
            reader.problems.append(f"{name}.{option}: {error.message}. {error.hint}".rstrip(". "))
            continue
        reader.idle |= {f"{name}.{each}": "it makes no difference to records" for each in settings.idle}
        unknown += [f"{name}.{each}" for each in settings.unknown]
    reader.idle |= dict.fromkeys(unknown, "no option of a converter with a schema registry")
    if unknown:
        reader.warnings.append(f"Unknown settings of {name}, without effect: {', '.join(sorted(unknown))}")


def _kind(given: str) -> str:
    """Return the kind of the converter class `given`, with or without its package, or "" if the class is unknown."""
    return next((kind for whole, kind in _CONVERTERS.items() if given in ("", whole, whole.rpartition(".")[2])), "")


def _json(reader: SettingsReader, name: str, *, schemas: bool) -> FormatChoice:
    """Return the JSON format that the options of `name` ask for. `schemas` is the default of `schemas.enable`."""
    reader.read_nulls(f"{name}.", "false")
    others = sorted(f"{name}.{option}" for option in reader.prefixed(f"{name}.") if option not in _OF_JSON)
    reader.idle |= dict.fromkeys(others, "no option of a JSON converter")
    if others:
        reader.warnings.append(f"Settings without effect, because {name} writes JSON: {', '.join(others)}")
    return FormatChoice(
        "json",
        reader.read(f"{name}.schemas.enable", FLAG, str(schemas).lower()),
        reader.read(f"{name}.decimal.format", one_of("base64", "numeric"), "base64"),
    )


def extended_headers(reader: SettingsReader) -> bool:
    """Return True if records of tables have Debezium's extended headers.

    They are Debezium's default. So a connector's file has them, unless it switches them off.
    """
    given: bool | None = reader["extended.headers.enabled"]
    return reader.given("connector.class") if given is None else given


def unicode_topics(reader: SettingsReader) -> bool:
    """Return True if `topic.naming.strategy` is Debezium's strategy for Unicode names.

    A naming strategy of the user's own is a Java class and cannot run here.
    """
    given = reader["topic.naming.strategy"].rpartition(".")[2]
    if given not in _STRATEGIES:
        known = ", ".join(f"io.debezium.schema.{name}" for name in _STRATEGIES)
        reader.problem("topic.naming.strategy", f"one of: {known}; a RegexRouter gives topics other names")
    return bool(given == _STRATEGIES[1])
