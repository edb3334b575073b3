"""What records look like: modes of types, formats, names, skipped operations, and what becomes of unreadable ones."""

from __future__ import annotations

from dataclasses import replace

from incsnap.config.patterns import split_list
from incsnap.config.reading import SettingsReader
from incsnap.config.servers import RegistrySettings
from incsnap.config.settings import FailureHandling, Formats
from incsnap.envelope.envelope_settings import FormatChoice
from incsnap.types.modes import CHOICES, Modes

_ADJUSTMENTS = ("none", "avro", "avro_unicode")
_OPERATIONS = frozenset("cudt")
_STRATEGIES = ("DefaultTopicNamingStrategy", "DefaultUnicodeTopicNamingStrategy")
_CONVERTERS = {
    "org.apache.kafka.connect.json.JsonConverter": "json",
    "io.confluent.connect.avro.AvroConverter": "avro",
    # Only for values of an outbox, see ``outbox.problems``.
    "org.apache.kafka.connect.storage.StringConverter": "text",
    "org.apache.kafka.connect.converters.ByteArrayConverter": "bytes",
    "io.debezium.converters.BinaryDataConverter": "bytes",
}
#: Its own converters frame records otherwise; its registry speaks Confluent's protocol beside its own.
_APICURIO = (
    ". With Apicurio's registry name io.confluent.connect.avro.AvroConverter, with its address for Confluent's clients"
    " (.../apis/ccompat/v7) as schema.registry.url, and let consumers read Confluent's form"
)
#: Of BinaryDataConverter: what writes all that is not bytes. Its own settings stand behind it.
_DELEGATE = "delegate.converter.type"
_OF_JSON = ("schemas.enable", "schemas.cache.size", "decimal.format")
#: Of the Avro converter; the rest goes to the registry's client.
_URL = "schema.registry.url"


def modes(reading: SettingsReader, converting: str) -> Modes:
    """``converting``: what becomes of a value that the modes cannot express."""
    default = Modes()
    return Modes(
        decimal_handling=reading.choice("decimal.handling.mode", default.decimal_handling, CHOICES["decimal_handling"]),
        time_precision=reading.choice("time.precision.mode", default.time_precision, CHOICES["time_precision"]),
        binary_handling=reading.choice("binary.handling.mode", default.binary_handling, CHOICES["binary_handling"]),
        bigint_unsigned=reading.choice(
            "bigint.unsigned.handling.mode", default.bigint_unsigned, CHOICES["bigint_unsigned"]
        ),
        time_adjuster=reading.choice("enable.time.adjuster", default.time_adjuster, CHOICES["time_adjuster"]),
        converting=converting,
    )


def failures(reading: SettingsReader) -> FailureHandling:
    choices = ("fail", "warn", "skip")

    def of_event(name: str) -> str:
        # Debezium's older word for skip, which it still takes for these two.
        mode = reading.choice(name, "fail", (*choices, "ignore"))
        return "skip" if mode == "ignore" else mode

    return FailureHandling(
        processing=of_event("event.processing.failure.handling.mode"),
        converting=reading.choice("event.converting.failure.handling.mode", "warn", choices),
        inconsistent_schema=of_event("inconsistent.schema.handling.mode"),
    )


def skipped_operations(reading: SettingsReader) -> frozenset[str]:
    """``none``, or some of c (insert), u (update), d (delete), t (truncate); the default is t alone."""
    operations = frozenset(split_list(reading.text("skipped.operations", "t").lower()))
    if operations == {"none"}:
        return frozenset()
    if not operations <= _OPERATIONS:
        reading.problem("skipped.operations", "none, or a list of c, u, d and t")
    return operations & _OPERATIONS


def field_names(reading: SettingsReader) -> str:
    """Reads field.name.adjustment.mode; sanitize.field.names is its older name."""
    older = "avro" if reading.flag("sanitize.field.names", False) else "none"
    return reading.choice("field.name.adjustment.mode", older, _ADJUSTMENTS)


def formats(reading: SettingsReader) -> Formats:
    key, key_registry = _format(reading, "key.converter")
    value, value_registry = _format(reading, "value.converter")
    return Formats(
        key=key,
        value=value,
        key_registry=key_registry,
        value_registry=value_registry,
        schema_names=reading.choice("schema.name.adjustment.mode", "none", _ADJUSTMENTS),
    )


def _format(reading: SettingsReader, name: str) -> tuple[FormatChoice, RegistrySettings]:
    """Without a converter: JSON without schemas. With Connect's JSON converter schemas are on unless switched off."""
    given = reading.text(name)
    options = reading.prefixed(f"{name}.")
    kind = _kind(given)
    if not kind:
        reading.problem(name, f"one of: {', '.join(_CONVERTERS)}{_APICURIO if 'apicurio' in given.lower() else ''}")
        return FormatChoice(), RegistrySettings()
    delegate = f"{name}.{_DELEGATE}"
    if given.endswith("BinaryDataConverter") and reading.given(delegate):
        if _kind(reading.text(delegate)) != "json":
            reading.problem(delegate, "org.apache.kafka.connect.json.JsonConverter, the only one here")
        return replace(_json(reading, delegate, schemas=True), raw=True), RegistrySettings()
    if kind in ("text", "bytes"):
        if options:
            listed = ", ".join(f"{name}.{one}" for one in options)
            reading.warnings.append(f"Settings without effect on {kind}: {listed}")
        return FormatChoice(kind), RegistrySettings()
    if kind == "json":
        return _json(reading, name, schemas=bool(given)), RegistrySettings()
    url = reading.required(f"{name}.{_URL}", "the address of the schema registry, http://host:port")
    if url and not url.startswith(("http://", "https://")):
        reading.problem(f"{name}.{_URL}", "of the form http://host:port")
    return FormatChoice("avro"), RegistrySettings(
        url=url, client={option: value for option, value in options.items() if option not in (_URL, "schemas.enable")}
    )


def _kind(given: str) -> str:
    """Gives the kind of the first converter that is called so; "" for none."""
    return next((kind for whole, kind in _CONVERTERS.items() if given in ("", whole, whole.rpartition(".")[2])), "")


def _json(reading: SettingsReader, name: str, *, schemas: bool) -> FormatChoice:
    """What the settings behind ``name`` say. ``schemas``: are they written where nothing is said of them?"""
    others = sorted(f"{name}.{option}" for option in reading.prefixed(f"{name}.") if option not in _OF_JSON)
    if others:
        reading.warnings.append(f"Settings without effect on JSON: {', '.join(others)}")
    return FormatChoice(
        "json",
        reading.flag(f"{name}.schemas.enable", schemas),
        reading.choice(f"{name}.decimal.format", "base64", ("base64", "numeric")),
    )


def unicode_topics(reading: SettingsReader) -> bool:
    """Reads topic.naming.strategy: one of Debezium's two; a class of the user's own cannot be run here."""
    given = reading.text("topic.naming.strategy")
    if given and given.rpartition(".")[2] not in _STRATEGIES:
        known = ", ".join(f"io.debezium.schema.{name}" for name in _STRATEGIES)
        reading.problem("topic.naming.strategy", f"one of: {known}; another name of topics is given by a RegexRouter")
    return given.rpartition(".")[2] == _STRATEGIES[1]
