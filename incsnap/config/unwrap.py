"""The settings of ExtractNewRecordState, whose fields and headers are of the envelope."""

from __future__ import annotations

from incsnap.config.patterns import split_list
from incsnap.config.reading import SettingsReader
from incsnap.config.settings import Formats
from incsnap.envelope.added_fields import is_known
from incsnap.transforms.chain import Chain
from incsnap.transforms.form import Reference, Route
from incsnap.transforms.unwrap import MODES, ExtractNewRecordState

_STRUCTS = ("before", "after", "source", "transaction")
_OF_TRANSACTIONS = ("id", "total_order", "data_collection_order")
_OF_ENVELOPES = ("op", "ts_ms", "ts_us", "ts_ns")


def extract_new_record_state(reading: SettingsReader, name: str) -> ExtractNewRecordState:
    start = f"transforms.{name}."
    # A NULL of a column that has a DEFAULT stays NULL here, whichever it says: the two can be told apart then.
    reading.flag(start + "replace.null.with.default", True)
    for option, instead in _REFUSED.items():
        if reading.given(start + option):
            reading.problems.append(f"{start}{option}: not supported; {instead.format(start=start)}")
    return ExtractNewRecordState(
        reading.choice(start + "delete.tombstone.handling.mode", MODES[0], MODES),
        _references(reading, start + "add.fields"),
        _references(reading, start + "add.headers"),
        Route(name, column) if (column := reading.text(start + "route.by.field")) else None,
    )


def problems(chain: Chain, formats: Formats) -> list[str]:
    """What of the formats cannot be written where rows name their topics."""
    routes = [step.transform.route for step in chain if isinstance(step.transform, ExtractNewRecordState)]
    avro = [side for side, choice in (("key", formats.key), ("value", formats.value)) if choice.kind == "avro"]
    return [
        f"transforms.{route.name}.route.by.field: Avro's schemas are registered by topic, before rows are looked at, so"
        f" {side}.converter cannot be Avro; name JsonConverter, or send tables to topics by a RegexRouter"
        for route in routes
        if route is not None
        for side in avro
    ]


_REFUSED = {
    "drop.tombstones": "Debezium 3 does not know it either; write {start}delete.tombstone.handling.mode, which is"
    " rewrite-with-tombstone for drop.tombstones=false with delete.handling.mode=rewrite",
    "delete.handling.mode": "Debezium 3 does not know it either; write {start}delete.tombstone.handling.mode, which is"
    " drop, tombstone, rewrite, rewrite-with-tombstone or delete-to-tombstone",
}


def _references(reading: SettingsReader, setting: str) -> tuple[Reference, ...]:
    prefix = reading.text(f"{setting}.prefix", "__") if not _is_empty(reading, f"{setting}.prefix") else ""
    references: list[Reference] = []
    absent: list[str] = []
    for text in split_list(reading.text(setting)):
        reference = _reference(reading, setting, prefix, text)
        if reference is None:
            continue
        if is_known(reference):
            references.append(reference)
        else:
            absent.append(text)
    if absent:
        reading.warnings.append(f"{setting}: records of MySQL have no {', '.join(absent)}; left out, as by Debezium")
    twice = sorted({each.name for each in references if [other.name for other in references].count(each.name) > 1})
    if twice and setting.endswith("fields"):
        reading.problems.append(f"{setting}: {', '.join(twice)} would be there twice; give one another name behind a :")
    return tuple(references)


def _is_empty(reading: SettingsReader, name: str) -> bool:
    """An empty prefix is one."""
    return name in reading.names() and not reading.given(name)


def _reference(reading: SettingsReader, setting: str, prefix: str, text: str) -> Reference | None:
    """``source.ts_ms:when`` and the like; None where there is a problem."""
    path, _, new = text.partition(":")
    parts = path.split(".")
    field = parts[0] if len(parts) == 1 else parts[1]
    struct = _struct_of(field) if len(parts) == 1 else parts[0]
    if not field or ":" in new:
        reading.problems.append(f"{setting}: {text!r} is not of the form field, struct.field or field:name")
        return None
    if field in _STRUCTS or struct in ("before", "after"):
        reading.problems.append(
            f"{setting}: {text!r} cannot be added; fields of source and transaction, op and ts_ms can"
        )
        return None
    if struct not in ("", "source", "transaction"):
        reading.problems.append(f"{setting}: {text!r}: records have no {struct}, but source and transaction")
        return None
    plain = field if len(parts) == 1 else f"{struct}_{field}"
    if struct == "source" and field == "op":
        # What source has not is looked for in the envelope.
        struct = ""
    return Reference(struct, field, prefix + (new or plain))


def _struct_of(field: str) -> str:
    if field in _OF_TRANSACTIONS:
        return "transaction"
    return "" if field in _OF_ENVELOPES else "source"
