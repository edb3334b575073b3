"""Options and partitions of tables. Of all of them only the character set has a say in columns."""

from __future__ import annotations

from incsnap.ddl.character_sets import read_charset, read_collation, skip_charset_word
from incsnap.ddl.clauses import Clauses
from incsnap.ddl.words import NotUnderstood

#: Options whose value is a number, a word or a text, behind an equals sign that may be left out.
_VALUES = frozenset(
    (
        "ENGINE", "MAX_ROWS", "MIN_ROWS", "AVG_ROW_LENGTH", "PASSWORD", "COMMENT", "COMPRESSION", "ENCRYPTION",
        "AUTO_INCREMENT", "PACK_KEYS", "STATS_AUTO_RECALC", "STATS_PERSISTENT", "STATS_SAMPLE_PAGES", "CHECKSUM",
        "TABLE_CHECKSUM", "DELAY_KEY_WRITE", "ROW_FORMAT", "INSERT_METHOD", "TABLESPACE", "STORAGE", "CONNECTION",
        "KEY_BLOCK_SIZE", "ENGINE_ATTRIBUTE", "SECONDARY_ENGINE_ATTRIBUTE", "SECONDARY_ENGINE", "AUTOEXTEND_SIZE",
    )
)  # fmt: skip
#: Words that begin a query, which adds columns to the table that is created.
_QUERIES = frozenset(("SELECT", "TABLE", "VALUES", "WITH", "AS", "IGNORE", "REPLACE", "LIKE"))


def read_option(words: Clauses) -> str | None:
    """Read one option. Return the default character set if the option tells it, else None.

    Raise `NotUnderstood` where no option follows.
    """
    if words.skip("DEFAULT"):
        charset = _read_charset(words)
        if charset is None:
            raise words.wrong()
        return charset
    charset = _read_charset(words)
    if charset is not None:
        return charset
    if words.skip_any(*_VALUES):
        words.skip("=")
        _skip_value(words)
    elif words.skip_any("DATA", "INDEX"):
        words.expect("DIRECTORY")
        words.skip("=")
        words.skip_string()
    elif words.skip("UNION"):
        words.skip("=")
        words.skip_brackets()
    else:
        raise words.wrong()
    return None


def _read_charset(words: Clauses) -> str | None:
    """Read the character set, or that of the collation, where one of them is next."""
    if skip_charset_word(words):
        words.skip("=")
        return read_charset(words)
    if words.skip("COLLATE"):
        words.skip("=")
        return read_collation(words)
    return None


def _skip_value(words: Clauses) -> None:
    if words.is_string:
        words.skip_string()
    elif not (words.skip("DEFAULT") or words.skip("NULL")):
        words.name()


def one_charset(before: str, charset: str | None) -> str:
    """Return the character set that a statement tells with one more option. The server refuses two that differ."""
    if charset is None or charset == before:
        return before
    if before:
        raise NotUnderstood(f"the table has two default character sets, {before} and {charset}")
    return charset


def skip_partitions(words: Clauses, *, created: bool = False) -> None:
    """Skip a clause about partitions, which stands last, up to the end.

    `created`: in a CREATE TABLE, where a query may stand behind it.
    """
    refused = _QUERIES if created else ()
    while not words.at_end and words.peek() != ";":
        if words.peek() == "(":
            words.skip_brackets(refused)
        elif words.is_string:
            words.skip_string()
        elif words.peek() in refused:
            raise words.wrong()
        else:
            words.take()
