"""The loads of `benchmarks.memory`. Each has data that are large in another way."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from benchmarks.benchmark_database import BenchmarkDatabase

#: A value that no compression makes much smaller: random bytes as text (base64).
_RANDOM = "TO_BASE64(RANDOM_BYTES(1024))"


@dataclass(frozen=True, slots=True)
class MemoryLoad:
    """A load, which is written once for all jobs."""

    name: str  #: for example `backlog`
    bench: BenchmarkDatabase  #: database that holds the load
    tables: list[str]  #: names with the database
    records: int  #: records that a job has to deliver
    write: Callable[[], None]  #: writes the load
    #: True: jobs start after the write and snapshot the tables; False: they start before it and stream
    by_signal: bool = False
    seconds: float = 600.0  #: longest time for the delivery
    kafka: Mapping[str, object] = field(default_factory=dict)  #: further settings of the consumer that counts

    @property
    def topics(self) -> list[str]:
        """Return the names of topics, without the prefix."""
        return self.tables

    def signal(self) -> None:
        """Request a snapshot of the tables."""
        self.bench.execute_snapshot(self.tables)


def _run(bench: BenchmarkDatabase, *statements: str) -> None:
    with bench.connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)


def _source(bench: BenchmarkDatabase, rows: int = 10_000, kilobytes: int = 10) -> str:
    """Create a table of rows of text, without writing the binlog. Return its name."""
    name = f"{bench.database}.source"
    text = f"REPLACE(CONCAT({', '.join([_RANDOM] * max(1, round(kilobytes / 1.4)))}), '\\n', ' ')"
    _run(
        bench,
        "SET SESSION sql_log_bin = 0",
        "SET SESSION cte_max_recursion_depth = 1000000",
        f"CREATE TABLE {name} (id BIGINT PRIMARY KEY, t MEDIUMTEXT)",
        f"INSERT INTO {name} WITH RECURSIVE n (n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM n WHERE n < {rows - 1})"
        f" SELECT n, {text} FROM n",
        "SET SESSION sql_log_bin = 1",
    )
    return name


def _logged_only(bench: BenchmarkDatabase, name: str) -> str:
    """Create a table that stores no rows, but whose changes are in the binlog. Return its name."""
    table = f"{bench.database}.{name}"
    _run(bench, f"CREATE TABLE {table} (id BIGINT PRIMARY KEY, t MEDIUMTEXT) ENGINE=BLACKHOLE")
    return table


def backlog(bench: BenchmarkDatabase, size: float) -> MemoryLoad:
    """Return the load of a backlog of 5 GB: transactions of 100 MB, with rows of 10 kB."""
    source, table, count = _source(bench), _logged_only(bench, "wide"), max(1, round(50 * size))

    def write() -> None:
        for each in range(count):
            _run(bench, f"INSERT INTO {table} SELECT id + {each * 10_000}, t FROM {source}")

    return MemoryLoad("backlog", bench, [table], count * 10_000, write)


def transaction(bench: BenchmarkDatabase, size: float, compressed: bool = False) -> MemoryLoad:
    """Return a load of one transaction of 2 GB."""
    name = "compressed" if compressed else "transaction"
    source, table, count = _source(bench), _logged_only(bench, name), max(1, round(20 * size))

    def write() -> None:
        # MySQL compresses transactions up to a gigabyte.
        _run(bench, f"SET SESSION binlog_transaction_compression = {int(compressed)}", "BEGIN")
        for each in range(count):
            _run(bench, f"INSERT INTO {table} SELECT id + {each * 10_000}, t FROM {source}")
        _run(bench, "COMMIT", "SET SESSION binlog_transaction_compression = 0")

    return MemoryLoad(name, bench, [table], count * 10_000, write)


def compressed(bench: BenchmarkDatabase, size: float) -> MemoryLoad:
    """Return a load of one compressed transaction: a single event of at most a gigabyte."""
    return transaction(bench, 0.5 * size, compressed=True)


def narrow(bench: BenchmarkDatabase, size: float) -> MemoryLoad:
    """Return the load of a snapshot of 20 million rows of two integers."""
    rows, each = round(20_000_000 * size), 1_000_000
    table = f"{bench.database}.narrow"

    def write() -> None:
        _run(
            bench,
            "SET SESSION sql_log_bin = 0",
            "SET SESSION cte_max_recursion_depth = 1000000",
            f"CREATE TABLE {table} (id BIGINT PRIMARY KEY, v INT)",
        )
        for first in range(0, rows, each):
            _run(
                bench,
                f"INSERT INTO {table} WITH RECURSIVE n (n) AS (SELECT {first} UNION ALL SELECT n + 1 FROM n"
                f" WHERE n < {min(first + each, rows) - 1}) SELECT n, n % 1000 FROM n",
            )
        _run(bench, "SET SESSION sql_log_bin = 1")

    return MemoryLoad("narrow", bench, [table], rows, write, by_signal=True)


def _rows16(bench: BenchmarkDatabase, name: str, size: float, by_signal: bool, text: bool = False) -> MemoryLoad:
    count = max(2, round(20 * size))
    table = f"{bench.database}.{name}"
    # 16 MiB less the rest of the row.
    length = (16 << 20) - 100
    kind = "LONGTEXT" if text else "LONGBLOB"

    def write() -> None:
        part = "REPLACE(TO_BASE64(RANDOM_BYTES(1024)), '\\n', '\\t')" if text else "RANDOM_BYTES(1024)"
        tile = ", ".join([part] * 16)
        _run(bench, "SET SESSION max_execution_time = 0", f"CREATE TABLE {table} (id INT PRIMARY KEY, v {kind})")
        for row in range(count):
            # 256 kB of random bytes, 64 times: lz4 in Kafka and Arrow looks back 64 kB, so it finds no repetition.
            _run(
                bench,
                f"SET @tile = (SELECT CONCAT({tile}))",
                f"SET @tile = CONCAT({', '.join(f'@tile, {part}' for _ in range(12))})",
                f"INSERT INTO {table} VALUES ({row}, LEFT(REPEAT(@tile, 100), {length}))",
            )
        if not by_signal:
            _run(bench, f"UPDATE {table} SET v = REVERSE(v)", f"DELETE FROM {table}")

    # Records of a row: an insertion, an update, a deletion and its tombstone.
    records = count if by_signal else 4 * count
    return MemoryLoad(name, bench, [table], records, write, by_signal, kafka={"fetch.message.max.bytes": 100_000_000})


def blobs(bench: BenchmarkDatabase, size: float) -> MemoryLoad:
    """Return the load of 20 rows of 16 MB, as LONGBLOB, that are streamed."""
    return _rows16(bench, "blobs", size, by_signal=False)


def texts(bench: BenchmarkDatabase, size: float) -> MemoryLoad:
    """Return the load of 20 rows of 16 MB, as LONGTEXT, that are streamed."""
    return _rows16(bench, "texts", size, by_signal=False, text=True)


def blobsnap(bench: BenchmarkDatabase, size: float) -> MemoryLoad:
    """Return the load of a snapshot of 20 rows of 16 MB, as LONGBLOB."""
    return _rows16(bench, "blobsnap", size, by_signal=True)


def textsnap(bench: BenchmarkDatabase, size: float) -> MemoryLoad:
    """Return the load of a snapshot of 20 rows of 16 MB, as LONGTEXT."""
    return _rows16(bench, "textsnap", size, by_signal=True, text=True)


def tables(bench: BenchmarkDatabase, size: float) -> MemoryLoad:
    """Return the load of a snapshot of 5,000 tables of 20 rows."""
    count = max(1, round(5_000 * size))
    names = [f"{bench.database}.t{number:05}" for number in range(count)]

    def write() -> None:
        for name in names:
            _run(
                bench,
                f"CREATE TABLE {name} (id INT PRIMARY KEY, v VARCHAR(100), d DECIMAL(10,2), at DATETIME(3))",
                f"INSERT INTO {name} WITH RECURSIVE n (n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM n WHERE n < 19)"
                " SELECT n, CONCAT('text ', n), n / 7, '2026-01-01' FROM n",
            )

    return MemoryLoad("tables", bench, names, 20 * count, write, by_signal=True)


LOADS: dict[str, Callable[[BenchmarkDatabase, float], MemoryLoad]] = {
    each.__name__: each for each in (backlog, transaction, compressed, blobs, texts, blobsnap, textsnap, narrow, tables)
}
