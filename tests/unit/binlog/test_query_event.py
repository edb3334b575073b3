"""Tests of the reader of statements and of their sessions."""

from __future__ import annotations

from dataclasses import replace

import pytest

from incsnap.binlog.protocol.query_event import read_query
from incsnap.ddl.words import ANSI_QUOTES, NO_BACKSLASH_ESCAPES
from incsnap.events import Session
from tests.support import binlog_bytes as made

CHARSETS = {8: "latin1", 28: "gbk", 33: "utf8mb3", 63: "binary", 95: "cp932", 255: "utf8mb4"}


def with_client(collation: int, *, server: int = 255) -> bytes:
    """Return the status variables of a session whose client has this collation."""
    return (
        b"\0\1\0\0\0\1" + bytes(8) + b"\6\3std\4"
        + b"".join(number.to_bytes(2, "little") for number in (collation, 255, server))
    )  # fmt: skip


def test_a_query_survives_any_character_set() -> None:
    plain = read_query(made.query_body("DROP TABLE `t`", "böse", thread=77))
    assert (plain.thread, plain.session.database, plain.sql, plain.exact) == (77, "böse", "DROP TABLE `t`", True)
    latin = read_query(made.query_body("DROP TABLE `tür`".encode("latin-1")))
    assert (latin.sql, latin.exact) == ("DROP TABLE `tür`", False)


def test_a_statement_is_read_in_the_character_set_of_its_client() -> None:
    for collation, codec in ((8, "latin-1"), (255, "utf-8"), (33, "utf-8")):
        query = read_query(made.query_body("DROP TABLE `tür`".encode(codec), status=with_client(collation)), CHARSETS)
        assert (query.sql, query.exact) == ("DROP TABLE `tür`", True)
    query = read_query(made.query_body("DROP TABLE `表`".encode("gbk"), status=with_client(28)), CHARSETS)
    assert (query.sql, query.exact) == ("DROP TABLE `表`", True)


def test_text_of_another_character_set_that_is_utf8_by_chance_is_read_as_what_it_is() -> None:
    body = made.query_body(b"DROP TABLE `" + b"\xc4\xb5" + b"`", status=with_client(95))
    assert read_query(body, CHARSETS).sql == "DROP TABLE `ﾄｵ`"


@pytest.mark.parametrize("collation", [28, 63, 95, 255])
def test_bytes_of_a_literal_that_are_no_text_leave_the_names_as_they_are(collation: int) -> None:
    body = made.query_body(b"ALTER TABLE t COMMENT '\x80\xff', RENAME u", status=with_client(collation))
    query = read_query(body, CHARSETS)
    assert query.exact
    assert query.sql.startswith("ALTER TABLE t COMMENT '")
    assert query.sql.endswith("', RENAME u")


def test_a_statement_tells_the_settings_of_its_session() -> None:
    modes = ANSI_QUOTES | NO_BACKSLASH_ESCAPES
    status = (
        b"\0\1\0\0\0" + b"\1" + modes.to_bytes(8, "little") + b"\6\3std" + b"\3\1\0\1\0" + b"\4\x1c\0\x08\0\xff\0"
        + b"\5\6SYSTEM" + b"\7\1\0" + b"\x0b\4root\x09localhost" + b"\x0c\2shop\0other\0" + b"\x10\1"
        + b"\x11" + bytes(8) + b"\x12\xff\0"
    )  # fmt: skip
    query = read_query(made.query_body("DROP TABLE t", "böse", status=status), CHARSETS)
    assert query.session == Session("böse", modes, "gbk", "latin1", "utf8mb4", True, "SYSTEM", True)
    assert query.has_xid


@pytest.mark.parametrize(("status", "checks"), [(b"\0\0\0\0\4", False), (b"\0\xff\xff\xff\xfb", True), (b"", None)])
def test_a_statement_tells_whether_foreign_keys_are_checked(status: bytes, checks: bool | None) -> None:
    assert read_query(made.query_body("DROP TABLE t", status=status)).session.foreign_key_checks is checks


@pytest.mark.parametrize(
    ("status", "sql_mode"),
    [
        (b"\1" + bytes(8) + b"\4\1\1\1\1\1\1", 0),
        (b"\0\1\0\0\0", None),
        (b"", None),
        (b"\0\1\0\0\0\xaa\1\2\3", None),
        (b"\x0c\xfe\1" + bytes(8), 0),
    ],
)
def test_settings_that_an_event_does_not_tell_are_unknown(status: bytes, sql_mode: int | None) -> None:
    query = read_query(made.query_body("DROP TABLE t", status=status), CHARSETS)
    assert replace(query.session, foreign_key_checks=None) == Session("shop", sql_mode)
    assert not query.has_xid
    assert query.sql == "DROP TABLE t"
