"""ROLLBACK and SAVEPOINT in the binlog: they can undo rows that the binlog holds, and such rows are never sent."""

from __future__ import annotations

import re

from incsnap.binlog.transactions import OpenTransaction
from incsnap.errors import BinlogError, shorten

#: Whole statements, as servers write them into the binlog.
_SAVEPOINT = re.compile(r"SAVEPOINT\s+(?P<name>.+?)\s*", re.I | re.S)
_ROLLBACK_TO = re.compile(r"ROLLBACK\s+(?:WORK\s+)?TO\s+(?:SAVEPOINT\s+)?(?P<name>.+?)\s*", re.I | re.S)


class RolledBackError(BinlogError):
    """An error: the binlog undoes rows of captured tables."""

    hint = (
        "MySQL logs this if a transaction changes tables of InnoDB and of an engine without transactions. Leave"
        " these tables out with table.exclude.list, or start with a new checkpoint.location after the transaction"
        " (incsnap.start.gtid.set) and signal execute-snapshot for them."
    )


def note_savepoint(opened: OpenTransaction, sql: str) -> None:
    """Remember how many rows events the transaction has before a SAVEPOINT."""
    if savepoint := _SAVEPOINT.fullmatch(sql):
        opened.savepoints[_name(savepoint)] = opened.rows_seen


def refuse_undone_rows(opened: OpenTransaction, sql: str, place: str) -> None:
    """Raise RolledBackError if the statement undoes rows of captured tables that the transaction has in the binlog.

    The statement is a ROLLBACK, which undoes all rows, or a ROLLBACK TO SAVEPOINT, which undoes those after the
    savepoint.
    """
    savepoint = _ROLLBACK_TO.fullmatch(sql)
    kept = opened.savepoints.get(_name(savepoint), 0) if savepoint else 0
    if opened.rows_seen > kept:
        raise RolledBackError(
            f"{place}: {shorten(sql)!r} rolls back {opened.rows_seen - kept} rows events of captured tables; they are"
            " not committed and cannot be sent"
        )


def _name(savepoint: re.Match[str]) -> str:
    return savepoint["name"].strip("`").lower()
