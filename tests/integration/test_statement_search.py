"""Statements of a binlog that is longer than memory holds: the same as the tail tells, and the tail goes on."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from incsnap.binlog.capture_options import CaptureOptions
from incsnap.binlog.statement_search import statements_behind
from incsnap.errors import ServerUnreachable
from incsnap.events import StreamPosition
from lab.addresses import MySqlAddress
from tests.support.schema_play import Play

pytestmark = pytest.mark.servers
_SERVER_ID = 731_337


@pytest.fixture
def play(mysql_address: MySqlAddress, database: str) -> Iterator[Play]:
    play = Play(mysql_address, database)
    play.run("CREATE TABLE t (id int PRIMARY KEY, a varchar(20))")
    yield play
    play.connection.close()


def statements_between(play: Play, start: StreamPosition, end: StreamPosition) -> list[str]:
    options = CaptureOptions(concerns=lambda change: change.database == play.database)
    each = statements_behind(play.connect, _SERVER_ID, options, start, (end.file, end.pos))
    return [change.sql for change in each]


def test_the_statements_between_two_places_are_found_in_order(play: Play) -> None:
    play.run("ALTER TABLE t ADD COLUMN before_it INT")
    start = play.here()
    assert statements_between(play, start, start) == []
    play.run("INSERT INTO t (id) VALUES (1)", "ALTER TABLE t ADD COLUMN b INT", "FLUSH BINARY LOGS")
    play.run("XA START 'x'", "INSERT INTO t (id) VALUES (2)", "XA END 'x'", "XA PREPARE 'x'", "XA COMMIT 'x'")
    play.run("ALTER TABLE t ADD COLUMN c INT", "INSERT INTO t (id) VALUES (3)")
    end = play.here()
    assert statements_between(play, start, end) == ["ALTER TABLE t ADD COLUMN b INT", "ALTER TABLE t ADD COLUMN c INT"]


def test_a_statement_of_the_transaction_that_is_cut_in_two_is_before_the_place(play: Play) -> None:
    play.run("INSERT INTO t VALUES (1, 'a')")
    start = play.here()
    play.run("CREATE TABLE s AS SELECT * FROM t")
    end = play.here()
    [opened] = [span for span in str(end.delivered - start.delivered).split(",") if span]
    inside = StreamPosition(start.delivered, start.file, start.pos, opened, 1, start.server_uuid)
    assert statements_between(play, start, end)[0].startswith("CREATE TABLE `s`")
    assert statements_between(play, inside, end) == []


def test_another_server_than_was_meant_tells_nothing(play: Play) -> None:
    start = play.here()
    elsewhere = StreamPosition(
        start.delivered, start.file, start.pos, server_uuid="00000000-0000-0000-0000-000000000001"
    )
    with pytest.raises(ServerUnreachable, match="The search for statements after"):
        statements_between(play, elsewhere, start)
