"""A check for foreign keys whose cascades InnoDB executes itself: the binlog has no events of the changed child rows.

MySQL 9.6 and newer execute cascades above the storage engine and log each changed row, unless the server was started
with `innodb_native_foreign_keys`. In older versions InnoDB always executes them.
https://dev.mysql.com/doc/refman/9.7/en/replication-features-foreign-keys.html
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from pymysql.connections import Connection

from incsnap.mysql.server_rules import Finding
from incsnap.mysql.session import query
from incsnap.tables import TableId

_VARIABLE = "innodb_native_foreign_keys"
#: Most tables that the warning names. A schema may have hundreds.
_NAMED = 20


def cascades_in_engine(variables: Mapping[str, str]) -> bool:
    """Return True if InnoDB executes cascades itself.

    `variables` come from SHOW GLOBAL VARIABLES. MySQL 9.5 and older do not have `innodb_native_foreign_keys`.

    >>> cascades_in_engine({}), cascades_in_engine({"innodb_native_foreign_keys": "OFF"})
    (True, False)
    """
    return variables.get(_VARIABLE, "ON").upper() in ("ON", "1")


def cascade_findings(
    connection: Connection[Any], variables: Mapping[str, str], captured: Collection[TableId]
) -> Iterable[Finding]:
    """Yield one warning that names the tables of `captured` whose rows change without an event in the binlog."""
    if not captured or not cascades_in_engine(variables):
        return
    changed: dict[str, list[str]] = {}
    for database, table, parent_database, parent, on_delete, on_update in query(
        connection,
        "SELECT CONSTRAINT_SCHEMA, TABLE_NAME, UNIQUE_CONSTRAINT_SCHEMA, REFERENCED_TABLE_NAME, DELETE_RULE,"
        " UPDATE_RULE FROM information_schema.REFERENTIAL_CONSTRAINTS WHERE CONSTRAINT_SCHEMA IN %s"
        " ORDER BY CONSTRAINT_SCHEMA, TABLE_NAME, CONSTRAINT_NAME",
        (tuple(sorted({each.database for each in captured})),),
    ):
        child = TableId(str(database), str(table))
        rules = [
            f"ON {event} {rule}"
            for event, rule in (("DELETE", on_delete), ("UPDATE", on_update))
            if rule in ("CASCADE", "SET NULL", "SET DEFAULT")
        ]
        if rules and child in captured:
            changed.setdefault(str(child), []).append(f"{' '.join(rules)} of {parent_database}.{parent}")
    if changed:
        yield _finding(changed, known=_VARIABLE in variables)


def _finding(changed: Mapping[str, Collection[str]], *, known: bool) -> Finding:
    """Return the warning. `changed` maps each table to its foreign keys. `known`: the server has the variable."""
    names = [f"{table} ({', '.join(keys)})" for table, keys in changed.items()]
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    problem = (
        "InnoDB runs these cascades itself, and the binlog lacks the rows that they delete or change. The topics of"
        f" these tables keep such rows as they were: {', '.join(names[:_NAMED])}{more}"
    )
    repair = f"start mysqld with {_VARIABLE}=OFF" if known else f"use MySQL 9.6 or newer, where {_VARIABLE} is OFF"
    return Finding(
        "foreign keys",
        problem,
        f"Delete and update child rows by statements of their own, before the parent's; or {repair}",
        "warning",
    )
