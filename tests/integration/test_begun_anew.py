"""Tests of a server that begins a new binlog under its old UUID: RESET BINARY LOGS AND GTIDS, and another `log_bin`."""

from __future__ import annotations

import platform
import shutil
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from incsnap.binlog.protocol import dump_connection as dump
from incsnap.binlog.tail import Tail
from incsnap.errors import OffsetError, ServerUnreachable
from incsnap.events import BinlogPosition, StreamPosition, begun_anew, server_of
from incsnap.gtid import GtidSet
from incsnap.snapshot.window import ChunkResult
from lab import cache, fetched_mysql
from lab.addresses import MySqlAddress
from lab.servers import servers
from tests.support.mysql_versions import has_tags
from tests.support.planned_job import PlannedJob, settings_of
from tests.support.purging import purge_binlog
from tests.support.server_session import ServerSession
from tests.support.stream_in_memory import of_shop, rows_of
from tests.support.waiting import PATIENCE_SECONDS, wait_until

pytestmark = pytest.mark.servers
BEGIN = StreamPosition(GtidSet(), "", 0)
CREATION = "CREATE DATABASE shop", "CREATE TABLE shop.t (id INT PRIMARY KEY, v VARCHAR(200))"


class Server(ServerSession):
    def __init__(self, address: MySqlAddress) -> None:
        super().__init__(address)
        [(self.uuid,)] = self.run("SELECT @@server_uuid")

    def insert(self, *ids: int) -> None:
        for number in ids:
            self.run(f"INSERT INTO shop.t VALUES ({number}, 'row {number}')")

    def executed(self) -> str:
        [(executed,)] = self.run("SELECT @@GLOBAL.gtid_executed")
        return str(executed).replace("\n", "")

    def begin_anew(self, *, keep_gtids: bool) -> None:
        executed = self.executed()
        self.reset()
        if keep_gtids:
            self.run(f"SET GLOBAL gtid_purged = '{executed}'")


@pytest.fixture(scope="module")
def address() -> Iterator[MySqlAddress]:
    with servers(kafka=False, mysql_options=["--server-id=13"]) as one:
        yield one.mysql


@pytest.fixture
def server(address: MySqlAddress, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setattr(dump, "_CATCH_UP_SECONDS", 0.3)
    with closing(Server(address)) as server:
        server.run("DROP DATABASE IF EXISTS shop")
        server.reset()
        server.run(*CREATION)
        yield server


@contextmanager
def tail(start: StreamPosition, server: Server) -> Iterator[Tail]:
    with closing(Tail(server.connect, 4713, start, of_shop, None, 1 << 26)) as tail:
        yield tail


def advanced(tail: Tail, start: StreamPosition, server: Server, log: str) -> StreamPosition:
    """Return the end of the batch that comes to the end of the server's binlog `log`.

    Rows without names are followed by batches that end behind each statement, so one batch may not come that far.
    """
    deadline = time.monotonic() + PATIENCE_SECONDS
    end = start
    while not (end.server_uuid == log and end.reached(*server.end())):
        assert time.monotonic() < deadline, end
        end = tail.advance(end, 1 << 20, 1000, server.end(), 0.1).end
    return end


def ids(tail: Tail, start: StreamPosition, end: StreamPosition) -> list[int]:
    return [int(body.split(b"row ")[1][:1]) for *_, body in rows_of(tail.slices(start, end, 2))]


def refused(tail: Tail, start: StreamPosition) -> str:
    with pytest.raises(OffsetError) as raised:
        tail.advance(start, 1 << 20, 1000, ("binlog.999999", 4), PATIENCE_SECONDS)
    assert "new checkpoint.location" in raised.value.hint
    return raised.value.message


@pytest.mark.parametrize("flushes", [0, 3], ids=["in the first file", "in a later file"])
def test_the_stream_goes_on_behind_a_reset_that_kept_the_gtids(server: Server, flushes: int) -> None:
    server.run(*["FLUSH BINARY LOGS"] * flushes)
    server.insert(1, 2, 3)
    again = begun_anew(server.uuid)
    with tail(BEGIN, server) as running:
        before = advanced(running, BEGIN, server, server.uuid)
        server.begin_anew(keep_gtids=True)
        server.insert(4, 5)
        server.run("FLUSH BINARY LOGS")
        server.insert(6)
        after = advanced(running, before, server, again)
        assert ids(running, before, after) == [4, 5, 6]
    # Restarted from the last place in the binlog before.
    saved = StreamPosition.from_json(before.to_json())
    with tail(saved, server) as restarted:
        end = advanced(restarted, saved, server, again)
        assert ids(restarted, saved, end) == [4, 5, 6]
        assert end.delivered == after.delivered == GtidSet.parse(server.executed())


@pytest.mark.parametrize("flushes", [0, 3], ids=["in the first file", "in a later file"])
def test_a_reset_that_lost_delivered_gtids_stops_a_running_job_with_what_to_do(server: Server, flushes: int) -> None:
    server.run(*["FLUSH BINARY LOGS"] * flushes)
    server.insert(1, 2, 3)
    with tail(BEGIN, server) as running:
        before = advanced(running, BEGIN, server, server.uuid)
        server.begin_anew(keep_gtids=False)
        server.insert(4)
        server.run("FLUSH BINARY LOGS")
        assert f"server {server.uuid} lacks transactions that were delivered already" in refused(running, before)


def test_a_server_that_was_reset_and_reused_gtids_while_the_job_was_down_is_refused(server: Server) -> None:
    server.run(*["FLUSH BINARY LOGS"] * 3)
    server.insert(1)
    with tail(BEGIN, server) as running:
        before = advanced(running, BEGIN, server, server.uuid)
    server.begin_anew(keep_gtids=False)
    server.insert(2, 3, 4, 5)  # now it has executed all names that were delivered
    assert before.delivered <= GtidSet.parse(server.executed())
    with tail(before, server) as restarted:
        assert "has begun its binlog anew, with other transactions" in refused(restarted, before)


def test_a_position_at_which_no_event_begins_is_of_another_binlog(server: Server) -> None:
    server.insert(1)
    with tail(BEGIN, server) as running:
        before = advanced(running, BEGIN, server, server.uuid)
    server.begin_anew(keep_gtids=True)
    server.run("INSERT INTO shop.t VALUES (2, 'row 2" + "." * 150 + "')", "DELETE FROM shop.t WHERE id = 2")
    server.insert(3, 4, 5, 6)
    assert server.end() > (before.file, before.pos)
    with tail(before, server) as restarted:
        end = advanced(restarted, before, server, begun_anew(server.uuid))
        assert ids(restarted, before, end)[2:] == [3, 4, 5, 6]


@pytest.mark.parametrize("keep_gtids", [False, True], ids=["names given again", "names kept"])
@pytest.mark.parametrize("flushes", [0, 1], ids=["same file", "in a later file"])
def test_a_reset_while_the_job_was_away_is_noticed_though_the_log_looks_the_same(
    server: Server, keep_gtids: bool, flushes: int
) -> None:
    server.insert(1, 2, 3)
    with tail(BEGIN, server) as running:
        before = advanced(running, BEGIN, server, server.uuid)
    assert before.begun > 0
    with tail(StreamPosition.from_json(before.to_json()), server) as same:
        server.insert(4)
        server.run("DROP DATABASE shop")
        saved = advanced(same, before, server, server.uuid)
    # The time at which a file is begun is told in seconds.
    wait_until(lambda: server.run("SELECT UNIX_TIMESTAMP()")[0][0] > saved.begun)
    server.begin_anew(keep_gtids=keep_gtids)
    server.run(*CREATION)
    server.insert(6, 7, 8, 9)
    server.run("DROP DATABASE shop")
    assert server.end() == (saved.file, saved.pos), "it does not look the same: nothing is put to the test"
    server.run(*["FLUSH BINARY LOGS"] * flushes, *CREATION)
    server.insert(5)
    with tail(saved, server) as restarted:
        if keep_gtids:
            end = advanced(restarted, saved, server, begun_anew(server.uuid))
            assert ids(restarted, saved, end) == [6, 7, 8, 9, 5]
        else:
            assert "has begun its binlog anew, with other transactions" in refused(restarted, saved)


def test_a_file_that_was_purged_under_a_job_that_was_away_is_no_other_binlog(server: Server) -> None:
    server.insert(1)
    with tail(BEGIN, server) as running:
        before = advanced(running, BEGIN, server, server.uuid)
    server.run("FLUSH BINARY LOGS")
    purge_binlog(server.connection)
    server.insert(2)
    with tail(before, server) as restarted:
        assert ids(restarted, before, advanced(restarted, before, server, server.uuid)) == [2]


def test_a_connection_that_is_made_again_finds_its_binlog_the_same(server: Server) -> None:
    with tail(BEGIN, server) as running:
        end = advanced(running, BEGIN, server, server.uuid)
        for number in range(1, 6):
            server.insert(number)
            before, end = end, advanced(running, end, server, server.uuid)
            assert ids(running, before, end) == [number]
            server.end_dumps()
            server.run("FLUSH BINARY LOGS")
            purge_binlog(server.connection)
        assert server.run("SHOW BINARY LOGS")[0][0] == "binlog.000006"
        end = advanced(running, end, server, server.uuid)
    with tail(end, server) as restarted:
        server.insert(7)
        assert ids(restarted, end, advanced(restarted, end, server, server.uuid)) == [7]


def test_previous_gtids_are_read_as_the_server_writes_them(server: Server) -> None:
    server.insert(1)
    for name in ("abc", "b") if has_tags(server.connection) else ():
        server.run(f"SET gtid_next = 'AUTOMATIC:{name}'", "DELETE FROM shop.t", "SET gtid_next = AUTOMATIC")
        server.insert(1)
    server.run("FLUSH BINARY LOGS")
    previous_gtids = server.run(f"SHOW BINLOG EVENTS IN '{server.end()[0]}' LIMIT 2")[1][5]
    with tail(BEGIN, server) as running:
        end = advanced(running, BEGIN, server, server.uuid)
        assert end.delivered == GtidSet.parse(previous_gtids)
        assert GtidSet.decode(end.delivered.encode()) == end.delivered


# -- another log_bin ---------------------------------------------------------------------------------------------------


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A data folder that servers can be started on one after the other."""
    try:
        installed = cache.entry(f"mysql-debian-sid-{platform.machine()}", fetched_mysql._build)
    except ServerUnreachable as unknown:
        pytest.skip(f"needs a server on a folder of its own: {unknown}")
    shutil.copytree(installed / "template", tmp_path / "data")
    return tmp_path / "data"


@contextmanager
def started(data: Path, *options: str) -> Iterator[Server]:
    with (
        fetched_mysql.fetched_mysql([f"--datadir={data}", "--server-id=14", *options]) as address,
        closing(Server(address)) as server,
    ):
        yield server


@pytest.mark.parametrize("index", [[], ["--log-bin-index=binlog.index"]], ids=["index of its own", "index kept"])
def test_another_log_bin_with_a_snapshot_in_flight_loses_and_reorders_nothing(
    data: Path, index: list[str], kafka_address: str, topic_prefix: str, tmp_path: Path
) -> None:
    signal = "INSERT INTO shop.s VALUES ('1', 'execute-snapshot', '{\"data-collections\": [\"shop.t\"]}')"
    topic = f"{topic_prefix}.shop.t"

    def settings(server: Server) -> Any:
        more = {"signal__data__collection": "shop.s", "incremental__snapshot__chunk__size": "2"}
        return settings_of(server.address, kafka_address, topic_prefix, "shop", **more)

    with started(data, "--log-bin=binlog", *index) as server:
        server.run("CREATE DATABASE shop", "CREATE TABLE shop.t (id INT PRIMARY KEY, v VARCHAR(200))")
        server.run("CREATE TABLE shop.s (id VARCHAR(42) PRIMARY KEY, type VARCHAR(32), data VARCHAR(2048))")
        server.run(*["FLUSH BINARY LOGS"] * 4)
        server.insert(1, 2, 3, 4, 5, 6)
        job = PlannedJob(settings(server), str(tmp_path / "job"))
        server.insert(7)
        server.run(signal)
        job.until(topic, 1)
        job.batches_until(lambda: bool(job.offset.snapshot.in_flight), "window in flight")
        before = job.offset
        job.close()
        assert before.stream.file.startswith("binlog.")
        # The server is killed. Only what InnoDB has written to its own log survives another log_bin.
        server.run("FLUSH BINARY LOGS")
    with started(data, "--log-bin=newlog", *index) as server:
        server.run("UPDATE shop.t SET v = 'row 1 newer' WHERE id = 1")
        job.settings = settings(server)
        job.restart()
        try:
            begun = len(job.batches)
            job.batches_until(
                lambda: not job.offset.snapshot.active and job.offset.stream.reached(*server.end()), "end of both"
            )
            released: list[ChunkResult] = []
            for _, end in job.batches[begun:]:
                results = [each.window.result for each in end.snapshot.released if each.window.result]
                assert {each.server_uuid for each in results} <= {end.stream.server_uuid}
                released += results
            assert sum(each.rows for each in released) == 7
            stream = job.offset.stream
            assert (stream.file, stream.server_uuid) == (server.end()[0], begun_anew(server.uuid))
            assert server_of(stream.server_uuid) == server.uuid
            assert stream.delivered == GtidSet.parse(server.executed())
            values = [sent.value for sent in job.of(topic)]
            assert [value["op"] for value in values if value["op"] != "r"] == ["c", "u"]
            # Before the update, if the old log's end was enough for them, or read again behind it.
            assert {value["after"]["id"] for value in values if value["op"] == "r"} >= {2, 3, 4, 5, 6, 7}
            of_row_1 = [value["after"]["v"] for value in values if value["after"]["id"] == 1]
            assert "row 1 newer" in of_row_1
            assert set(of_row_1[of_row_1.index("row 1 newer") :]) == {"row 1 newer"}
        finally:
            job.close()


def test_gtids_that_an_older_copy_of_the_data_gives_again_in_another_log_bin_are_refused(
    data: Path, tmp_path: Path
) -> None:
    with started(data, "--log-bin=binlog") as server:
        server.run(*CREATION)
        server.insert(1)
        server.run("FLUSH BINARY LOGS")
    shutil.copytree(data, tmp_path / "older")
    with started(data, "--log-bin=binlog") as server:
        server.insert(2)
        with tail(BEGIN, server) as running:
            before = advanced(running, BEGIN, server, server.uuid)
    with started(tmp_path / "older", "--log-bin=newlog") as server:
        server.insert(3)
        assert GtidSet.parse(server.executed()) == before.delivered
        with tail(before, server) as restarted:
            assert "has begun its binlog anew, with other transactions" in refused(restarted, before)


def test_a_server_that_goes_back_to_an_earlier_log_bin_is_read_on(data: Path) -> None:
    before = BEGIN
    for number, name in enumerate(("binlog", "newlog", "binlog"), 1):
        with started(data, f"--log-bin={name}") as server:
            server.run(*(CREATION if number == 1 else ()))
            server.insert(number)
            log = (before.server_uuid and begun_anew(before.server_uuid)) or server.uuid
            with tail(before, server) as running:
                end = advanced(running, before, server, log)
                assert ids(running, before, end) == [number]
            before = end
            # The server is killed. InnoDB then has all transactions.
            server.run("FLUSH BINARY LOGS")


def test_files_of_another_log_bin_have_no_order() -> None:
    assert BinlogPosition("binlog.000012", 9).reached("binlog.000011", 99)
    assert not BinlogPosition("newlog.000013", 9).reached("binlog.000011", 99)
    assert begun_anew(begun_anew("u")) == "u/2"
    assert server_of("u/2") == "u"
