"""Tests of the loop that connects again: how long the server may be away, and from when this time is counted."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from incsnap.binlog.protocol.dump_connection import ConnectionLost
from incsnap.binlog.reconnecting import stay_connected
from incsnap.errors import ServerUnreachable
from incsnap.events import BinlogPosition


class Server:
    """A server with a script of (seconds that a call of `read` takes, whether it gets a connection)."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, script: list[tuple[float, bool]]) -> None:
        self.now = 0.0
        self.connections = 0
        self._script: Iterator[tuple[float, bool]] = iter(script)
        self._over = False
        monkeypatch.setattr("incsnap.binlog.reconnecting.time.monotonic", lambda: self.now)

    def read(self) -> None:
        step = next(self._script, None)
        if step is None:
            self._over = True
            raise ConnectionLost("closed")
        seconds, connects = step
        self.connections += connects
        self.now += seconds
        raise ConnectionLost("gone")

    def pause(self, seconds: float) -> None:
        self.now += seconds

    def stay(self) -> None:
        at = BinlogPosition("binlog.000001", 4)
        stay_connected(self.read, lambda: at, lambda: self.connections, lambda: self._over, self.pause, 300)


def test_a_connection_lost_after_a_long_idle_time_is_made_again(monkeypatch: pytest.MonkeyPatch) -> None:
    Server(monkeypatch, [(10_000.0, True), (1.0, False), (10_000.0, True)]).stay()


def test_a_server_that_cannot_be_reached_for_too_long_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    server = Server(monkeypatch, [(10_000.0, True), *[(30.0, False)] * 100])
    with pytest.raises(ServerUnreachable, match="300 s"):
        server.stay()

    assert 300 < server.now - 10_000 < 400


def test_a_connection_that_is_taken_away_again_and_again_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    server = Server(monkeypatch, [(0.5, True)] * 1_000)
    with pytest.raises(ServerUnreachable):
        server.stay()
