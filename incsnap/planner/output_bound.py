"""How many bytes of binlog a batch may take, so that what it puts out fits into memory and into one transaction.

A row of two integers is 9 bytes in the binlog and 500 in Kafka, with schemas 2,500; one of long texts is as long in
both. So the ratio is measured, batch by batch, and the bound follows it: down at once, up twofold at most. A job begins
small: it knows nothing yet, and a batch that Spark has noted must be sent as it is, however large it comes out.
"""

from __future__ import annotations

from dataclasses import dataclass

#: Keys and values of one batch, about: a second of a sink task, a tenth of a transaction's time.
OUTPUT_BYTES = 96 << 20
#: Bytes of binlog. At most so that a slice pickles in tens of milliseconds; 16 MiB of ordinary rows take half a second,
#: ten times what a batch costs anyhow.
MOST_BYTES, LEAST_BYTES, START_BYTES = 16 << 20, 64 << 10, 2 << 20
#: A batch of fewer bytes says nothing: its output is mostly what is the same for each.
_MEASURED_BYTES = 64 << 10


@dataclass(slots=True)
class OutputBound:
    """Ask ``bytes`` for the next batch's bound."""

    bytes: int = START_BYTES

    def is_worth_measuring(self, binlog_bytes: int) -> bool:
        """Is a batch that takes so much worth measuring? Half of the bound always is, or it would never grow."""
        return binlog_bytes >= min(_MEASURED_BYTES, self.bytes // 2)

    def batch_gave(self, binlog_bytes: int, output_bytes: int) -> None:
        """What a batch took of the binlog, and the keys and values that came of it; of change events alone."""
        if not self.is_worth_measuring(binlog_bytes):
            return
        fitting = OUTPUT_BYTES * binlog_bytes // max(output_bytes, 1)
        self.bytes = max(LEAST_BYTES, min(fitting, 2 * self.bytes, MOST_BYTES))
