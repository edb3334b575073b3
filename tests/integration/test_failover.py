"""The tail on two real servers: the same transactions at other positions."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing, contextmanager

import pytest

from incsnap.binlog.protocol import dump_connection as dump
from incsnap.binlog.tail import Tail
from incsnap.errors import OffsetError
from incsnap.events import StreamPosition
from incsnap.gtid import GtidSet
from lab.addresses import MySqlAddress
from lab.mysql_client import connect
from lab.servers import servers
from tests.support.server_session import ServerSession
from tests.support.stream_in_memory import of_shop, rows_of
from tests.support.waiting import PATIENCE_SECONDS

pytestmark = pytest.mark.servers

SOURCE = "aaaaaaaa-0000-4000-8000-000000000001"


class Server(ServerSession):
    """A server without a past, that executes transactions under the names it is given."""

    def __init__(self, address: MySqlAddress) -> None:
        super().__init__(address)
        self.reset()
        [(self.uuid,)] = self.run("SELECT @@server_uuid")
        self.commit(1, "CREATE DATABASE shop")
        self.commit(2, "CREATE TABLE shop.t (id int PRIMARY KEY, v varchar(200))")

    def commit(self, number: int, statement: str) -> None:
        self.run(f"SET gtid_next = '{SOURCE}:{number}'", statement, "SET gtid_next = AUTOMATIC")

    def insert(self, *ids: int) -> None:
        for number in ids:
            self.commit(number, f"INSERT INTO shop.t VALUES ({number}, 'row {number}')")


@pytest.fixture(scope="module")
def addresses() -> Iterator[tuple[MySqlAddress, MySqlAddress]]:
    with (
        servers(kafka=False, mysql_options=["--server-id=11"]) as one,
        servers(kafka=False, mysql_options=["--server-id=12"]) as other,
    ):
        yield one.mysql, other.mysql


@pytest.fixture
def pair(addresses: tuple[MySqlAddress, MySqlAddress]) -> Iterator[tuple[Server, Server]]:
    for address in addresses:
        with closing(connect(address)) as connection:
            connection.cursor().execute("DROP DATABASE IF EXISTS shop")
    with closing(Server(addresses[0])) as one, closing(Server(addresses[1])) as other:
        yield one, other


@contextmanager
def tail(start: StreamPosition, answers: list[Server]) -> Iterator[Tail]:
    """Yield a tail that connects to the first server of `answers`."""
    with closing(Tail(lambda: answers[0].connect(), 4711, start, of_shop, None, 1 << 26)) as tail:
        yield tail


def advanced(tail: Tail, start: StreamPosition, server: Server) -> StreamPosition:
    """Return the end of the batch that comes to the end of the server's binlog.

    Rows without names are followed by batches that end behind each statement, so one batch may not come that far.
    """
    deadline = time.monotonic() + PATIENCE_SECONDS
    end = start
    while not (end.server_uuid == server.uuid and end.reached(*server.end())):
        assert time.monotonic() < deadline, end
        end = tail.advance(end, 1 << 20, 1000, server.end(), 0.1).end
    return end


def numbers(tail: Tail, start: StreamPosition, end: StreamPosition) -> list[int]:
    return [int(gtid.rpartition(":")[2]) for gtid, *_ in rows_of(tail.slices(start, end, 2))]


def test_the_stream_goes_on_from_another_server_and_positions_begin_anew(pair: tuple[Server, Server]) -> None:
    one, other = pair
    one.insert(3, 4)
    one.run(*["FLUSH BINARY LOGS"] * 7)
    one.insert(5, 6)
    answers = [one]
    start = StreamPosition(GtidSet(), "", 0)
    with tail(start, answers) as moving:
        before = advanced(moving, start, one)
        assert (before.file, before.server_uuid) == ("binlog.000008", one.uuid)
        assert numbers(moving, start, before) == [3, 4, 5, 6]
        other.insert(3, 4, 5, 6, 7, 8)
        answers[0] = other
        one.end_dumps()
        after = advanced(moving, before, other)
        assert after.at < before.at
        assert (after.file, after.server_uuid) == ("binlog.000001", other.uuid)
        assert numbers(moving, before, after) == [7, 8]
        # And back: the first server has caught up meanwhile.
        one.insert(7, 8, 9)
        answers[0] = one
        other.end_dumps()
        back = advanced(moving, after, one)
        assert numbers(moving, after, back) == [9]
        assert numbers(moving, start, back) == [3, 4, 5, 6, 7, 8, 9]
    # Restarted against the other server, which has binlog positions far below the saved one.
    other.insert(9)
    saved = StreamPosition.from_json(before.to_json())
    with tail(saved, [other]) as again:
        end = advanced(again, saved, other)
        assert numbers(again, saved, end) == [7, 8, 9]
        assert end.delivered == back.delivered


def test_a_server_that_lacks_what_was_delivered_is_refused_unless_it_catches_up(
    pair: tuple[Server, Server], monkeypatch: pytest.MonkeyPatch
) -> None:
    one, other = pair
    one.insert(3, 4)
    start = StreamPosition(GtidSet(), "", 0)
    answers = [one]
    with tail(start, answers) as moving:
        before = advanced(moving, start, one)
        answers[0] = other
        one.end_dumps()
        moving.advance(before, 1 << 20, 1000, None, 0.5)
        other.insert(3, 4, 5)  # a replica that was behind
        after = advanced(moving, before, other)
        assert numbers(moving, before, after) == [5]
        monkeypatch.setattr(dump, "_CATCH_UP_SECONDS", 0.3)
        answers[0] = one
        other.end_dumps()
        with pytest.raises(OffsetError, match=f"server {one.uuid} lacks .*{SOURCE}:5"):
            moving.advance(after, 1 << 20, 1000, ("binlog.999999", 4), PATIENCE_SECONDS)
