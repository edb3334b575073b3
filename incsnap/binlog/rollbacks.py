"""ROLLBACK and SAVEPOINT in the log: rows that the log itself takes back are never sent as committed."""

from __future__ import annotations

import re

from incsnap.binlog.transactions import Open
from incsnap.errors import BinlogError, shorten

#: Whole statements, as servers write them into the log.
_SAVEPOINT = re.compile(r"SAVEPOINT\s+(?P<name>.+?)\s*", re.I | re.S)
_ROLLBACK_TO = re.compile(r"ROLLBACK\s+(?:WORK\s+)?TO\s+(?:SAVEPOINT\s+)?(?P<name>.+?)\s*", re.I | re.S)


class RolledBackError(BinlogError):
    """Rows of captured tables that the log takes back."""

    hint = (
        "A server logs this where a transaction changes tables of InnoDB and of an engine without transactions. Leave"
        " these tables out with table.exclude.list, or start with a new checkpoint.location behind the transaction"
        " (incsnap.start.gtid.set) and signal execute-snapshot for them."
    )


def note_savepoint(opened: Open, sql: str) -> None:
    """Remember how many rows events the transaction has before a SAVEPOINT."""
    if savepoint := _SAVEPOINT.fullmatch(sql):
        opened.savepoints[_name(savepoint)] = opened.rows_seen


def refuse_undone_rows(opened: Open, sql: str, place: str) -> None:
    """Raise ``RolledBackError`` where a ROLLBACK, or one to a savepoint, takes back rows of captured tables."""
    savepoint = _ROLLBACK_TO.fullmatch(sql)
    kept = opened.savepoints.get(_name(savepoint), 0) if savepoint else 0
    if opened.rows_seen > kept:
        raise RolledBackError(
            f"{place}: {shorten(sql)!r} takes back {opened.rows_seen - kept} rows events of captured tables; they are"
            " not committed, so they are not sent"
        )


def _name(savepoint: re.Match[str]) -> str:
    return savepoint["name"].strip("`").lower()
