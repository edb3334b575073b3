"""Jobs of Spark that read parts of tables and topics, and bring one block of bytes for each part to the driver.

Spark only runs the tasks. A block is bytes to Spark, so no row costs time in the JVM. Bytes cost 7 s of the JVM and 2 s
of the driver for a GB. So tasks on the driver's machine may put their blocks elsewhere, and bring empty ones.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import suppress
from typing import TypeVar

from pyspark import SparkContext

from incsnap.tasks.error_text import errors_of_tasks, hint_in_message
from incsnap.verify.allowance import Allowance
from incsnap.verify.kept_sides import BlockPlaces

P = TypeVar("P")
#: The number of a part, and its block.
Block = tuple[int, bytes]

#: Bytes of a block that are one value to Spark: a value is copied some times on the JVM's heap.
_VALUE_BYTES = 1 << 20
#: Seconds between two looks whether the comparison shall end.
_LOOK_SECONDS = 0.2


class PartJobs:
    """The jobs of one comparison.

    Without a limit of tasks, as many jobs run as there are task slots, each of one task. With a limit, one job runs at
    a time, with so many tasks.
    """

    def __init__(self, context: SparkContext, allowance: Allowance) -> None:
        self._context, self._allowance = context, allowance
        self._group = f"incsnap verify {secrets.token_hex(4)}"

    @property
    def on_this_machine(self) -> bool:
        """Return True if the tasks run on the driver's machine, as the driver's user."""
        return re.match(r"local(\[|$)", self._context.master or "") is not None

    def run(
        self, parts: Sequence[tuple[int, P]], weight: Callable[[P], int], most: int, read: Callable[[int, P], bytes]
    ) -> Iterator[Block]:
        """Yield the number and the block of each part, as its job is done.

        `parts`: their numbers, and the things that `read` makes blocks of. Parts of a common `weight` up to `most` have
        one task. Raise VerificationStopped if the comparison shall end; jobs that run are cancelled. Raise the
        IncsnapError of a task.
        """
        tasks = _grouped(parts, weight, most)
        if self._allowance.tasks is not None:
            for begin in range(0, len(tasks), self._allowance.tasks):
                with self._allowance.spark_job():
                    blocks = _blocks(self._context, tasks[begin : begin + self._allowance.tasks], read)
                yield from blocks
            return
        yield from self._side_by_side(tasks, read)

    def keep(
        self,
        places: BlockPlaces,
        side: str,
        parts: Sequence[tuple[int, P]],
        weight: Callable[[P], int],
        most: int,
        read: Callable[[P], bytes],
    ) -> Iterator[int]:
        """Write the block that `read` makes of each part to its file in `places`. Yield its number as it is written.

        Tasks on the driver's machine write the files, others send their blocks to the driver. Other arguments and
        errors are those of `run`. Raise ConfigError if a file cannot be written.
        """
        is_here = self.on_this_machine

        def kept(number: int, part: P) -> bytes:
            block = read(part)
            if not is_here:
                return block
            places.write(side, number, block)
            return b""

        for number, block in self.run(parts, weight, most, kept):
            if not is_here:
                places.write(side, number, block)
            yield number

    def _side_by_side(
        self, tasks: Sequence[Sequence[tuple[int, P]]], read: Callable[[int, P], bytes]
    ) -> Iterator[Block]:
        context = self._context
        slots = max(1, min(context.defaultParallelism, len(tasks)))

        def job(task: Sequence[tuple[int, P]]) -> list[Block]:
            context.setJobGroup(self._group, "incsnap: comparison of tables with topics", True)
            return _blocks(context, [task], read)

        with ThreadPoolExecutor(slots, "incsnap-verify") as pool:
            left, running = list(reversed(tasks)), set[Future[list[Block]]]()
            try:
                while left or running:
                    while left and len(running) <= slots:
                        running.add(pool.submit(job, left.pop()))
                    done, running = wait(running, _LOOK_SECONDS, FIRST_COMPLETED)
                    self._allowance.go_on()
                    for future in done:
                        yield from future.result()
            finally:
                for future in running:
                    future.cancel()
                if running:
                    with suppress(Exception):
                        context.cancelJobGroup(self._group)


def _grouped(parts: Sequence[tuple[int, P]], weight: Callable[[P], int], most: int) -> list[list[tuple[int, P]]]:
    """Return the parts in groups, in their order. A group has a weight of at most `most`, or one part."""
    groups: list[list[tuple[int, P]]] = []
    total = 0
    for number, part in parts:
        own = weight(part)
        if not groups or total + own > most:
            groups.append([])
            total = 0
        groups[-1].append((number, part))
        total += own
    return groups


def _blocks(
    context: SparkContext, tasks: Sequence[Sequence[tuple[int, P]]], read: Callable[[int, P], bytes]
) -> list[Block]:
    """Return the blocks of the parts of some tasks, which run at the same time. Raise the IncsnapError of a task."""

    def read_all(numbers: Iterable[int]) -> Iterator[Block]:
        for task in numbers:
            for number, part in tasks[task]:
                with hint_in_message():
                    block = read(number, part)
                for begin in range(0, max(1, len(block)), _VALUE_BYTES):
                    yield number, block[begin : begin + _VALUE_BYTES]

    # A job of an RDD has no query that is analysed and planned.
    job = context.parallelize(range(len(tasks)), len(tasks)).mapPartitions(read_all)
    with errors_of_tasks():
        read_parts = job.collect()
    by_part: dict[int, list[bytes]] = {}
    for number, part_bytes in read_parts:
        by_part.setdefault(number, []).append(part_bytes)
    return [(number, b"".join(each)) for number, each in by_part.items()]
