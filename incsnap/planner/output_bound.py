"""The bound of the binlog bytes of a batch, so that the batch's output fits into memory and into one transaction.

A row of two integers has 9 bytes in the binlog and 500 in Kafka, 2,500 with schemas. A row of long texts has as many
bytes in both. So the ratio is measured batch by batch, and the bound follows it: down at once, up twofold at most. A
job begins with a small bound, because it knows nothing yet. A batch that Spark has logged must be sent as it is,
however large its output is.
"""

from __future__ import annotations

from dataclasses import dataclass

#: Bytes of keys and values that a batch aims at: a second of a sink task, and a tenth of a transaction's time.
OUTPUT_BYTES = 96 << 20
#: Largest, smallest and first bound. With the largest a slice still pickles in tens of milliseconds. 16 MiB of ordinary
#: rows take half a second, ten times the fixed cost of a batch.
MOST_BYTES, LEAST_BYTES, START_BYTES = 16 << 20, 64 << 10, 2 << 20
#: A batch of fewer bytes is not measured: most of its output is a fixed part that each batch has.
_MEASURED_BYTES = 64 << 10


@dataclass(slots=True)
class OutputBound:
    """The bound of one job, with the measurements that change it."""

    bytes: int = START_BYTES  #: bytes of binlog that the next batch may take

    def is_worth_measuring(self, binlog_bytes: int) -> bool:
        """Whether a batch of so many bytes is worth measuring.

        Half of the bound always is, or a small bound would never grow.
        """
        return binlog_bytes >= min(_MEASURED_BYTES, self.bytes // 2)

    def batch_gave(self, binlog_bytes: int, output_bytes: int) -> None:
        """Adapt the bound to a batch that is done. Ignore a batch that is too small to be measured.

        `output_bytes` are the bytes of keys and values that came of the batch's change events.
        """
        if not self.is_worth_measuring(binlog_bytes):
            return
        fitting = OUTPUT_BYTES * binlog_bytes // max(output_bytes, 1)
        self.bytes = max(LEAST_BYTES, min(fitting, 2 * self.bytes, MOST_BYTES))
