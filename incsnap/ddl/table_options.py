"""Readers of the options and partitions of tables. Only the character set among them affects columns."""

from __future__ import annotations

from incsnap.ddl.character_sets import read_charset, read_collation, skip_charset_word
from incsnap.ddl.clauses import Clauses
from incsnap.ddl.words import NotUnderstood

#: Options with a number, a word or a text as their value. The equals sign may be left out.
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
    """Read one option. Return the default character set if the option sets it, otherwise None.

    Raise NotUnderstood if no option follows.
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
    """Read a character set, or the character set of a collation; None if neither is next."""
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
    """Return the default character set after one more option: `charset` if the option names one, otherwise `before`.

    `before` is the character set that earlier options of the statement name, "" for none. Raise NotUnderstood if an
    option names another one than before: the server refuses such a statement.
    """
    if charset is None or charset == before:
        return before
    if before:
        raise NotUnderstood(f"the table has two default character sets, {before} and {charset}")
    return charset


def skip_partitions(words: Clauses, *, created: bool = False) -> None:
    """Skip a clause about partitions, up to the end of the statement.

    `created`: in a CREATE TABLE. A query may stand behind the clause there, which raises NotUnderstood.
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
