"""The forms of topics that the ledger seeds faults into."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from tests.support.faulty_topic import Damage
from tests.verify_faults.record_forms import AvroForm, JsonForm, RecordForm
from tests.verify_faults.seeding import KINDS, LOST_TOMBSTONE, OF_HISTORY

_JSON = "org.apache.kafka.connect.json.JsonConverter"
_AVRO = "io.confluent.connect.avro.AvroConverter"
_BOTH = ("key", "value")


@dataclass(frozen=True, slots=True)
class Form:
    """A form of topics, and what happens to them beside the faults."""

    name: str  #: name in tables
    short: str  #: name in options
    avro: tuple[str, ...] = ()  #: parts of the record that are Avro
    schemas: bool = False  #: JSON with schemas
    envelope: bool = True  #: False: unwrapped rows
    compacted: bool = False  #: Kafka has removed older records
    partitions: int = 2  #: of each topic
    delivered: bool = False  #: a connector says that all was delivered; False: by chance
    compressed: bool = False  #: the server compresses transactions
    damage: Damage = field(default_factory=Damage)  #: what happens to the copies

    def settings(self, registry: str) -> dict[str, str]:
        """Return the settings of a job that writes such topics."""
        given = {"topic.creation.default.partitions": str(self.partitions)}
        for part in _BOTH:
            given[f"{part}.converter"] = _AVRO if part in self.avro else _JSON
            if part in self.avro:
                given[f"{part}.converter.schema.registry.url"] = registry
            else:
                given[f"{part}.converter.schemas.enable"] = str(self.schemas).lower()
        if self.avro:
            given["schema.name.adjustment.mode"] = "avro"
        if not self.envelope:
            given["transforms"] = "unwrap"
            given["transforms.unwrap.type"] = "io.debezium.transforms.ExtractNewRecordState"
            given["transforms.unwrap.add.fields"] = "op"
        return given

    def records(self, registry: str) -> RecordForm:
        """Return the form of the records."""
        json = JsonForm(self.schemas, self.schemas, self.envelope)
        if not self.avro:
            return json
        return AvroForm(registry, None if "key" in self.avro else JsonForm())

    @property
    def kinds(self) -> Sequence[str]:
        """Return the kinds of faults that this form can have."""
        return KINDS if self.envelope else [each for each in KINDS if each != LOST_TOMBSTONE]

    @property
    def shows(self) -> Sequence[str]:
        """Return the kinds of faults that this form can show."""
        return self.kinds if self.envelope and not self.compacted else [k for k in self.kinds if k not in OF_HISTORY]


FORMS = (
    Form("JSON", "json", damage=Damage(clock_goes_back=True)),
    Form("JSON with schemas", "schemas", schemas=True, damage=Damage(aborted=True)),
    Form("Avro", "avro", avro=_BOTH),
    Form("Avro values", "values", avro=("value",), partitions=8),
    Form("unwrapped", "unwrapped", envelope=False, delivered=True),
    Form("compacted", "compacted", compacted=True, damage=Damage(compacted=True)),
    Form("8 partitions", "wide", partitions=8, compressed=True),
)
