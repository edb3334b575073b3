"""The cost of a snapshot's row: reading it and sending it."""

from __future__ import annotations

import tempfile
from functools import partial

from benchmarks.benchmark_database import BenchmarkDatabase, topics
from benchmarks.scaling.planned_job import settings_of
from benchmarks.scaling.timing import ROUNDS, median, took
from incsnap.checkpoint.windows import WindowBuffers
from incsnap.config.settings import Settings
from incsnap.kafka.client_settings import ClientSettings
from incsnap.kafka.transaction import BucketWriter
from incsnap.mysql.session import connect, query
from incsnap.planner.planner import first_position
from incsnap.snapshot.offset import Offset, PlannedRead, TopicLayout
from incsnap.snapshot.window import Chunk, Window
from incsnap.tables import TableId
from incsnap.tasks import blocks
from incsnap.tasks.bucket import write_bucket
from incsnap.tasks.chunk import read_chunks
from incsnap.tasks.partitions import ChunkOrder

_CHUNK_ROWS = 50_000


def of_chunk(bench: BenchmarkDatabase, table: str) -> dict[str, float]:
    """Return elapsed and processor seconds a row, for reading a chunk and for sending its rows."""
    settings, name = settings_of(bench, f"{bench.database}-chunk"), TableId.parse(table)
    with connect(settings.mysql) as connection:
        ((last,),) = query(connection, f"SELECT MAX(id) FROM {table}")
    first = max(0, int(last) - _CHUNK_ROWS)
    rows = int(last) - first
    reads, sends = [], []
    with tempfile.TemporaryDirectory() as root, topics(bench.servers.kafka, settings.topic_prefix, {table: 1}) as names:
        for number in range(ROUNDS + 1):  # the first round is a warm-up
            window = Window(f"{number}-0", 1, name, "", (str(first),), (str(last),), rows, 1)
            chunk = Chunk(name, ("id",), (str(first),), (str(last),), "", "PRIMARY")
            at = first_position(settings, 1)
            order = ChunkOrder(
                TopicLayout(1, {names[table]: 1}), at.stream, PlannedRead(window, chunk, at.stream.delivered)
            )
            reads.append(took(partial(read_chunks, [order], settings, WindowBuffers(root))))
            sends.append(took(partial(_release, settings, root, at, window.id, names[table])))
    read, send = median(reads[1:]), median(sends[1:])
    return {
        "chunk": read.processor / rows,
        "chunk.elapsed": read.elapsed / rows,
        "release": send.processor / rows,
        "release.elapsed": send.elapsed / rows,
    }


def _release(settings: Settings, root: str, at: Offset, window_id: str, topic: str) -> None:
    reading = WindowBuffers(root).read_manifest(window_id)
    assert reading is not None
    assert not reading.error, reading
    what = blocks.ReleaseOrder(reading.file, topic, topic, parts=(0, reading.parts))
    release = blocks.release(1, 0, 0, what)
    client = ClientSettings(settings.kafka.bootstrap_servers, settings.kafka.producer)
    writer = BucketWriter(client, settings.topic_prefix, at.job_id)
    write_bucket(iter([blocks.to_arrow([release], "digest")]), WindowBuffers(root), writer, lambda _: 1)
