"""The mirror is read from apt's own sources, in both of their formats."""

from __future__ import annotations

from pathlib import Path

import pytest

from lab.debian_mirror import MirrorEntry, mirror


@pytest.fixture
def etc_apt(tmp_path: Path) -> Path:
    (tmp_path / "sources.list.d").mkdir()
    return tmp_path


def mirror_in(etc_apt: Path) -> MirrorEntry | None:
    return mirror(etc_apt, keyring=etc_apt / "no-such-keyring.gpg")


def test_a_one_line_list_is_read(etc_apt: Path) -> None:
    (etc_apt / "sources.list").write_text(
        "# deb http://old.example/debian bookworm main\n"
        "deb http://security.example/debian-security bookworm-security main\n"
        "deb [arch=amd64 signed-by=/keys/company.gpg] https://mirror.example/debian/ bookworm main contrib # ours\n"
    )

    expected = MirrorEntry("https://mirror.example/debian/", ("bookworm",), ("main", "contrib"), "/keys/company.gpg")
    assert mirror_in(etc_apt) == expected


def test_a_deb822_file_is_read(etc_apt: Path) -> None:
    (etc_apt / "sources.list.d" / "debian.sources").write_text(
        "Types: deb\n# a comment\nURIs: http://mirror.example/debian\nSuites: trixie\n trixie-updates\n"
        "Components: main\nSigned-By: /keys/debian.gpg\n\n"
        "Types: deb\nURIs: http://mirror.example/debian-security\nSuites: trixie-security\nComponents: main\n"
    )

    expected = MirrorEntry("http://mirror.example/debian", ("trixie", "trixie-updates"), ("main",), "/keys/debian.gpg")
    assert mirror_in(etc_apt) == expected


def test_a_key_inside_the_file_is_replaced_by_the_distributions_keyring(etc_apt: Path) -> None:
    keyring = etc_apt / "debian.gpg"
    keyring.touch()
    (etc_apt / "sources.list.d" / "debian.sources").write_text(
        "Types: deb\nURIs: mirror+file:///etc/apt/mirrors/debian.list\nSuites: trixie\nComponents: main\n"
        "Signed-By:\n -----BEGIN PGP PUBLIC KEY BLOCK-----\n .\n abc=\n -----END PGP PUBLIC KEY BLOCK-----\n"
    )

    source = mirror(etc_apt, keyring)

    assert source is not None
    assert (source.uri, source.signed_by) == ("mirror+file:///etc/apt/mirrors/debian.list", str(keyring))


@pytest.mark.parametrize(
    "text",
    [
        "Types: deb\nEnabled: no\nURIs: http://mirror.example/debian\nSuites: trixie\nComponents: main\n",
        "Types: deb-src\nURIs: http://mirror.example/debian\nSuites: trixie\nComponents: main\n",
        "Types: deb\nURIs: http://archive.example/ubuntu\nSuites: noble\nComponents: main\n",
        "Types: deb\nURIs: https://download.example/linux/debian\nSuites: trixie\nComponents: stable\n",
    ],
    ids=["disabled", "sources only", "another distribution", "a vendor's packages for Debian"],
)
def test_a_mirror_without_a_debian_archive_is_skipped(etc_apt: Path, text: str) -> None:
    (etc_apt / "sources.list.d" / "x.sources").write_text(text)

    assert mirror_in(etc_apt) is None


def test_a_machine_without_apt_has_no_mirror(tmp_path: Path) -> None:
    assert mirror_in(tmp_path / "nothing") is None
