"""The status file that a Unix group may read."""

from __future__ import annotations

import grp
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from incsnap.checkpoint.status_file import SharedStatus
from incsnap.errors import ConfigError

GROUP = grp.getgrgid(os.getgid()).gr_name


@pytest.fixture
def private_files() -> Iterator[None]:
    """Create files as a job does: only its user may read them."""
    before = os.umask(0o077)
    yield
    os.umask(before)


def _mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.usefixtures("private_files")
def test_the_group_may_read_the_file_at_every_moment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, modes = tmp_path / "incsnap" / "status.json", []
    shared = SharedStatus(str(tmp_path), str(path.parent), GROUP)
    shared.write(path.name, b"1")
    chown = os.chown

    def chown_later(*arguments: Any, **more: Any) -> None:
        modes.append(_mode(path))
        chown(*arguments, **more)

    monkeypatch.setattr(os, "chown", chown_later)
    shared.write(path.name, b"2")

    assert modes == [0o640]
    assert (_mode(path), path.read_bytes(), path.stat().st_gid) == (0o640, b"2", os.getgid())
    assert _mode(path.parent) == _mode(tmp_path) == 0o710


def test_a_group_that_nobody_can_look_up_any_more_is_still_given_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shared = SharedStatus(str(tmp_path), str(tmp_path / "incsnap"), GROUP)

    def refuse(name: str) -> None:
        raise KeyError(name)

    monkeypatch.setattr("shutil._get_gid", lambda name: None)
    monkeypatch.setattr(grp, "getgrnam", refuse)
    shared.write("status.json", b"1")

    assert _mode(tmp_path / "incsnap" / "status.json") == 0o640


def test_a_group_that_does_not_exist_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no group nobody-has-this"):
        SharedStatus(str(tmp_path), str(tmp_path / "incsnap"), "nobody-has-this")
