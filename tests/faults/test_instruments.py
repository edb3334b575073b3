"""The instruments of the fault tests: what they report must be true, or a row proves nothing."""

from __future__ import annotations

import socket
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from incsnap.checkpoint.files import Files
from lab.addresses import MySqlAddress
from tests.faults.matrix import Outcome, rows, shares, table
from tests.faults.moments import FILES, Watch
from tests.faults.switch import Switch
from tests.support.waiting import PATIENCE_SECONDS

only_linux = pytest.mark.skipif(sys.platform != "linux", reason="inotify")


@only_linux
@pytest.mark.parametrize("moment", FILES["plan"], ids=lambda moment: moment.name)
def test_a_step_is_seen_before_and_after(tmp_path: Path, moment: object) -> None:
    files = Files(str(tmp_path / "incsnap"))
    files.write("another.json", b"")
    before, after = FILES["plan"]
    with Watch(tmp_path, before) as early, Watch(tmp_path, after) as late:
        files.write("another.json", b"")
        assert not early.wait(0.0)
        files.write("planned-offset.json", b"{}", durable=True)

        assert early.wait(PATIENCE_SECONDS)
        assert late.wait(PATIENCE_SECONDS)
        assert not (early if moment is before else late).wait(0.0), "seen twice"


@only_linux
@pytest.mark.parametrize("row", ["window", "manifest", "discards"])
@pytest.mark.parametrize("turn", [0, 1])
def test_a_step_in_a_folder_that_is_made_for_it_is_seen(tmp_path: Path, row: str, turn: int) -> None:
    name = {"window": f"{'a' * 32}.arrow", "manifest": "manifest.json", "discards": "0.arrow"}[row]
    moment = FILES[row][turn]
    files = Files(str(tmp_path))
    stop = threading.Event()

    def write() -> None:
        number = 0
        while not stop.wait(0.01):
            # A temporary file exists for a moment only. In a new folder it may be gone before the folder is watched.
            number += 1
            files.write(f"{moment.folder}/{number // 5}/{name}", b"x", durable=True)

    writing = threading.Thread(target=write)
    with Watch(tmp_path, moment) as watch:
        writing.start()
        try:
            assert watch.wait(PATIENCE_SECONDS)
        finally:
            stop.set()
            writing.join()


def test_the_switch_leads_to_the_other_server_and_cuts_who_was_connected() -> None:
    with _greeter(b"one") as one, _greeter(b"two") as two, Switch(_address(one)) as switch:
        with _connected(switch) as client:
            assert _heard(client) == b"one"
            switch.to(_address(two))
            assert _heard(client) == b"", "still connected"
        with _connected(switch) as client:
            assert _heard(client) == b"two"
            switch.to(None)
        with _connected(switch) as client:
            assert _heard(client) == b""


def _connected(switch: Switch) -> socket.socket:
    return socket.create_connection((switch.address.host, switch.address.port), timeout=60)


def _heard(client: socket.socket) -> bytes:
    client.settimeout(60)
    return client.recv(3)


def test_every_row_is_given_its_share_of_the_faults() -> None:
    known = rows(30.0)

    given = shares(list(known), known, 200)

    assert sum(given.values()) >= 200
    assert min(given.values()) >= 2


def test_a_row_that_lost_something_is_wrong_in_the_table() -> None:
    text = table([Outcome("a", 2, wrong=["1 row is missing"]), Outcome("b", 2), Outcome("c", skipped="no root")])

    assert [line.split("|")[5].strip() for line in text.splitlines()[2:]] == [
        "**wrong**",
        "nothing",
        "skipped: no root",
    ]


@contextmanager
def _greeter(word: bytes) -> Iterator[socket.socket]:
    """Listen, send `word` to every client, and keep the connections."""
    kept: list[socket.socket] = []

    def greet() -> None:
        with suppress(OSError):
            while True:
                kept.append(listener.accept()[0])
                kept[-1].sendall(word)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        greeting = threading.Thread(target=greet)
        greeting.start()
        try:
            yield listener
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            greeting.join()
            for each in kept:
                each.close()


def _address(listener: socket.socket) -> MySqlAddress:
    return MySqlAddress("127.0.0.1", listener.getsockname()[1])
