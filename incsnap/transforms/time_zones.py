"""The transform io.debezium.transforms.TimezoneConverter: times in another time zone.

https://debezium.io/documentation/reference/stable/transformations/timezone-converter.html
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from incsnap.transforms.record_spec import RecordSpec, TimeZone, ValueShape, ZoneRule


@dataclass(frozen=True, slots=True)
class TimezoneConverter:
    """A transform that writes the times of envelopes in another time zone."""

    zone: str  #: name of the zone, or an offset as +05:30
    include: tuple[ZoneRule, ...] = ()  #: include.list
    exclude: tuple[ZoneRule, ...] = ()  #: exclude.list
    kind: Literal["TimezoneConverter"] = "TimezoneConverter"  #: name of the class where settings are stored as JSON

    def apply(self, spec: RecordSpec) -> RecordSpec:
        """Return the spec with the time zone. Records without an envelope stay as they are, as in Debezium."""
        if spec.value is not ValueShape.ENVELOPE:
            return spec
        zone = TimeZone(self.zone, spec.topic, self.include or self.exclude, bool(self.include))
        return replace(spec, zones=(*spec.zones, zone))
