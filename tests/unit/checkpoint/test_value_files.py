"""The DEFAULTs that a batch's schemas show lie beside the checkpoint, once for many batches."""

from __future__ import annotations

from pathlib import Path

import pytest

from incsnap.checkpoint.content_files import ContentFiles
from incsnap.checkpoint.files import Files
from incsnap.checkpoint.value_files import ValueFiles
from incsnap.checkpoint.windows import CheckpointDamaged
from incsnap.tables import Declared, SourceType, TableDefaults, TableId

KNOWN: TableDefaults = (
    (
        TableId("db", "a.b"),
        (
            Declared("price", "decimal", "0.00", SourceType("DECIMAL UNSIGNED", 6, 2)),
            Declared("name", "varchar", 'a "é"'),
            Declared("note", "text", None, SourceType("TEXT"), "a comment"),
        ),
    ),
    (TableId("db", "t"), (Declared("id", "int", "7"),)),
)
ALTERED: TableDefaults = (*KNOWN[:1], (TableId("db", "t"), (Declared("id", "int", "8"),)))


def default_files(root: Path) -> ValueFiles[TableDefaults]:
    """Return the files as a restarted process opens them, with an empty cache."""
    return ValueFiles(Files(str(root)), "defaults", "the DEFAULTs of columns", TableDefaults)


def names_in(root: Path) -> list[str]:
    return sorted(path.stem for path in (root / "defaults").glob("*"))


def test_what_a_life_has_kept_the_next_one_reads(tmp_path: Path) -> None:
    kept = default_files(tmp_path)
    first, none, altered = kept.keep(KNOWN), kept.keep(()), kept.keep(ALTERED)

    files = default_files(tmp_path)
    assert [files.read(name) for name in (first, none, altered)] == [KNOWN, (), ALTERED]
    assert kept.read(altered) == ALTERED


def test_what_a_release_without_types_has_kept_is_read(tmp_path: Path) -> None:
    (tmp_path / "defaults").mkdir()
    content = b'[[["db","t"],[["id","int","7"]]]]'
    name = ContentFiles(Files(str(tmp_path)), "defaults", "the DEFAULTs of columns").write(content)
    assert default_files(tmp_path).read(name) == ((TableId("db", "t"), (Declared("id", "int", "7"),)),)


def test_batches_of_the_same_defaults_name_one_file_that_is_written_once(tmp_path: Path) -> None:
    kept = default_files(tmp_path)
    name = kept.keep(KNOWN)
    [file] = (tmp_path / "defaults").glob("*")
    written = file.stat().st_mtime_ns, file.stat().st_ino

    assert [kept.keep(KNOWN), kept.keep((*KNOWN[:1], *KNOWN[1:]))] == [name, name]
    assert (file.stat().st_mtime_ns, file.stat().st_ino) == written
    assert default_files(tmp_path).keep(KNOWN) == name


def test_a_file_is_left_until_no_batch_that_may_be_run_again_names_it(tmp_path: Path) -> None:
    kept = default_files(tmp_path)
    old, new = kept.keep(KNOWN), kept.keep(ALTERED)
    for batch in range(1, 17):
        kept.forget(new, batch)
        assert names_in(tmp_path) == sorted([old, new])
    kept.forget(new, 17)
    assert names_in(tmp_path) == [new]


def test_a_file_that_was_about_to_go_stays_when_it_is_named_again(tmp_path: Path) -> None:
    kept = default_files(tmp_path)
    old = kept.keep(KNOWN)
    kept.forget(kept.keep(ALTERED), 1)
    assert kept.keep(KNOWN) == old
    for batch in range(2, 40):
        kept.forget(old, batch)
    assert names_in(tmp_path) == [old]


def test_files_go_where_schemas_are_no_longer_shown_and_come_back_where_they_are(tmp_path: Path) -> None:
    kept = default_files(tmp_path)
    name = kept.keep(KNOWN)
    for batch in 1, 17:
        kept.forget("", batch)
    assert not names_in(tmp_path)

    assert kept.keep(KNOWN) == name
    assert default_files(tmp_path).read(name) == KNOWN


@pytest.mark.parametrize("content", [None, b"", b"[]"])
def test_a_file_that_is_gone_or_torn_is_told_by_name(tmp_path: Path, content: bytes | None) -> None:
    name = default_files(tmp_path).keep(KNOWN)
    [file] = (tmp_path / "defaults").glob("*")
    if content is None:
        file.unlink()
    else:
        file.write_bytes(content)

    with pytest.raises(CheckpointDamaged, match=file.name):
        default_files(tmp_path).read(name)
