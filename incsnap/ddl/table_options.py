"""Readers of the options of tables. Only the character set among them affects columns."""

from __future__ import annotations

from incsnap.ddl.character_sets import read_charset_option
from incsnap.ddl.clauses import Clauses
from incsnap.ddl.words import NotUnderstood

#: Options with a number, a word or a text as their value.
_VALUES = dict.fromkeys(
    (
        "ENGINE", "MAX_ROWS", "MIN_ROWS", "AVG_ROW_LENGTH", "PASSWORD", "COMMENT", "COMPRESSION", "ENCRYPTION",
        "AUTO_INCREMENT", "PACK_KEYS", "STATS_AUTO_RECALC", "STATS_PERSISTENT", "STATS_SAMPLE_PAGES", "CHECKSUM",
        "TABLE_CHECKSUM", "DELAY_KEY_WRITE", "ROW_FORMAT", "INSERT_METHOD", "TABLESPACE", "STORAGE", "CONNECTION",
        "KEY_BLOCK_SIZE", "ENGINE_ATTRIBUTE", "SECONDARY_ENGINE_ATTRIBUTE", "SECONDARY_ENGINE", "AUTOEXTEND_SIZE",
    ),
    "= value",
)  # fmt: skip
#: Options without effect on columns, each with the form of what stands behind it.
_OPTIONS = {**_VALUES, "DATA": "DIRECTORY = string", "INDEX": "DIRECTORY = string", "UNION": "= brackets"}


def read_option(words: Clauses) -> str | None:
    """Read one option. Return the default character set if the option sets it, otherwise None.

    Raise NotUnderstood if no option follows.
    """
    is_default = words.skip("DEFAULT")
    charset = read_charset_option(words)
    if charset is None and (is_default or not words.skip_option(_OPTIONS)):
        raise words.wrong()
    return charset


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
