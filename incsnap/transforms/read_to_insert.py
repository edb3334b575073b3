"""The transform io.debezium.connector.mysql.transforms.ReadToInsertEvent: rows of snapshots as insertions."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from incsnap.transforms.record_spec import RecordSpec, ValueShape

#: The end of the names of schemas by which Debezium's class tells an envelope.
_SUFFIX = ".Envelope"


@dataclass(frozen=True, slots=True)
class ReadToInsertEvent:
    """A transform that gives the envelopes of rows of snapshots the operation of insertions."""

    kind: Literal["ReadToInsertEvent"] = "ReadToInsertEvent"  #: name of the class where settings are stored as JSON

    def apply(self, spec: RecordSpec) -> RecordSpec:
        """Return the spec of rows of snapshots with `op` c. All other specs stay as they are.

        As in Debezium, a value is an envelope only if the name of its schema ends like an envelope's.
        """
        if spec.value is not ValueShape.ENVELOPE or spec.op != "r" or not spec.envelope_name.endswith(_SUFFIX):
            return spec
        return replace(spec, op="c", read_op="c")
