"""The jars of s3a: fetched once from a Maven repository, all or none."""

from __future__ import annotations

import base64
import hashlib
import http.server
import os
import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from incsnap.errors import ConfigError
from incsnap.spark.store.s3a_jars import _JARS, s3a_jars


class Silent(http.server.SimpleHTTPRequestHandler):
    #: header `Authorization` of the last request
    authorization: str | None = None

    def do_GET(self) -> None:
        Silent.authorization = self.headers["Authorization"]
        super().do_GET()

    def log_message(self, *_: object) -> None:
        """Print nothing."""


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Yield the folder of a Maven repository with all jars, each with its name as content."""
    monkeypatch.setenv("INCSNAP_CACHE", str(tmp_path / "cache"))
    for group, name, version in _JARS:
        folder = tmp_path / "maven" / group / name / version
        folder.mkdir(parents=True)
        (folder / f"{name}-{version}.jar").write_text(name)
        (folder / f"{name}-{version}.jar.sha1").write_text(f"{hashlib.sha1(name.encode()).hexdigest()}  a.jar\n")
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), partial(Silent, directory=str(tmp_path / "maven")))
    monkeypatch.setenv("DEFAULT_ARTIFACT_REPOSITORY", f"http://127.0.0.1:{server.server_port}")
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield tmp_path / "maven"
    server.shutdown()
    server.server_close()


def test_jars_come_from_the_mirror_once(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = s3a_jars()
    monkeypatch.setenv("DEFAULT_ARTIFACT_REPOSITORY", "http://127.0.0.1:1")

    assert s3a_jars() == folder
    assert {jar.name for jar in folder.iterdir()} == {f"{name}-{version}.jar" for _, name, version in _JARS}
    assert (folder / "hadoop-aws-3.5.0.jar").read_text() == "hadoop-aws"


def test_a_jar_that_is_missing_leaves_no_folder(repository: Path, tmp_path: Path) -> None:
    next(repository.rglob("sts-*.jar")).unlink()

    with pytest.raises(ConfigError, match=r"cannot be fetched: sts-2\.35\.4\.jar: HTTP Error 404"):
        s3a_jars()
    assert [path.suffix for path in (tmp_path / "cache").iterdir()] == [".lock"]


def test_a_page_in_place_of_a_jar_is_refused(repository: Path, tmp_path: Path) -> None:
    next(repository.rglob("sts-*.jar")).write_text("<html>Log in</html>")

    with pytest.raises(ConfigError, match=r"sts-2\.35\.4\.jar has another SHA-1"):
        s3a_jars()
    assert [path.suffix for path in (tmp_path / "cache").iterdir()] == [".lock"]


def test_the_password_of_a_mirror_is_sent_and_never_shown(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mirror = os.environ["DEFAULT_ARTIFACT_REPOSITORY"].replace("://", "://cdc:s3%40cret@")
    monkeypatch.setenv("DEFAULT_ARTIFACT_REPOSITORY", mirror)
    s3a_jars()
    assert Silent.authorization == f"Basic {base64.b64encode(b'cdc:s3@cret').decode()}"

    monkeypatch.setenv("INCSNAP_CACHE", str(repository.parent / "another"))
    next(repository.rglob("sts-*.jar")).unlink()
    with pytest.raises(ConfigError) as raised:
        s3a_jars()
    assert "cret" not in str(raised.value)
