"""A check of the MySQL server before a job starts. It reports all problems at once, each with its repair.

Privileges are tested by statements (a SELECT of no rows, a SHOW), not by reading GRANTs. To read GRANTs, the check
would have to understand roles, partial revokes and proxies.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from contextlib import closing
from typing import Any

from pymysql.connections import Connection
from pymysql.constants import ER

from incsnap.config.settings import Settings
from incsnap.envelope.column_rules import ColumnRules
from incsnap.envelope.table_view import view_of
from incsnap.errors import ConfigError, PreflightFailed, ServerAway, ServerUnreachable, UnsupportedType
from incsnap.gtid import GtidSet
from incsnap.mysql import catalog, watermarks
from incsnap.mysql.cascades import cascade_findings
from incsnap.mysql.error_codes import NO_PRIVILEGE
from incsnap.mysql.loads import load_findings
from incsnap.mysql.online_tables import captured_tables
from incsnap.mysql.server_rules import Finding, query_findings, replica_findings, variable_findings
from incsnap.mysql.session import QueryRefusedError, connect, named, query
from incsnap.mysql.signal_table import creation, shape_or_lack
from incsnap.mysql.start_place import start_gtids
from incsnap.mysql.versions import OLDEST, replica_status_statement, says_replica, version
from incsnap.mysql.xa import prepared_findings
from incsnap.tables import TEXTS, TableId, TableShape
from incsnap.types.column_type import describe

__all__ = ["NO_RECOVERY", "Finding", "account", "findings", "may_select", "require"]

#: The finding for snapshot.mode=recovery without an offset. Debezium refuses this mode as well.
NO_RECOVERY = Finding(
    "snapshot.mode",
    "recovery needs an offset, and the checkpoint has none",
    "For a new job set snapshot.mode to initial or no_data; to continue a job, correct checkpoint.location",
)

_TEXT = TEXTS | {"json"}


def findings(settings: Settings, offset_gtids: GtidSet | None = None, of_tools: Collection[str] = ()) -> list[Finding]:
    """Return all findings, errors first.

    `offset_gtids` is what a saved offset has delivered; None for a new job. `of_tools`: tables that the offset knows as
    those of tools for online schema changes, as `TableId.folded` gives their names.
    """
    try:
        with closing(connect(settings.mysql, read_timeout=30.0)) as connection:
            all_findings = list(_all(connection, settings, offset_gtids, of_tools))
    except ServerUnreachable as error:
        return [Finding("server", error.message, error.hint, waits=isinstance(error, ServerAway))]
    return sorted(all_findings, key=lambda finding: finding.severity != "error")


def require(reported: Iterable[Finding]) -> None:
    """Raise PreflightFailed if `reported` contains errors; the error lists all of them."""
    errors = [finding for finding in reported if finding.severity == "error"]
    if errors:
        lines = "".join(f"\n  {finding}" for finding in errors)
        raise PreflightFailed(f"The servers are not ready:{lines}")


def _all(
    connection: Connection[Any], settings: Settings, offset_gtids: GtidSet | None, of_tools: Collection[str]
) -> Iterable[Finding]:
    """Yield all findings, in no particular order."""
    server = version(connection)
    text = str(query(connection, "SELECT VERSION()")[0][0])
    if "mariadb" in text.lower() or server < OLDEST:
        yield Finding("version", f"the server is {text}", "Use MySQL 8.0 or later")
        return
    user = account(connection)
    variables = {str(name): str(value) for name, value in query(connection, "SHOW GLOBAL VARIABLES")}
    yield from variable_findings(variables)
    if settings.include_query:
        yield from query_findings(variables)
    logging = variables.get("log_bin") == "ON"
    yield from _binlog_rights(connection, settings, server, user, variables)
    if logging:
        yield from _purged(connection, offset_gtids, settings)
        if offset_gtids is None:
            yield from prepared_findings(connection, user)
            yield from _start_place(connection, settings)
    if offset_gtids is None and settings.snapshot.mode == "recovery":
        yield NO_RECOVERY
    yield from _signal_table(connection, settings, user)
    yield from load_findings(connection, settings)
    yield from _tables(connection, settings, user, variables, of_tools)


def _binlog_rights(
    connection: Connection[Any],
    settings: Settings,
    server: tuple[int, int, int],
    user: str,
    variables: dict[str, str],
) -> Iterable[Finding]:
    """Yield findings about reading the binlog: privileges, server ids and replication."""
    try:
        if named(connection, replica_status_statement(server)):
            yield from replica_findings(variables)
        if variables.get("log_bin") == "ON":
            yield from _logged(connection, settings, variables)
    except QueryRefusedError as error:
        yield _right(error, "REPLICATION CLIENT", "may not read where the binlog ends", user)
    own = settings.mysql.server_id
    if variables.get("server_id") == str(own):
        problem = f"{own} is the server's own id"
        yield Finding("database.server.id", problem, "Set database.server.id to a number that no other replica has")
    try:
        replicas = named(connection, "SHOW REPLICAS" if says_replica(server) else "SHOW SLAVE HOSTS")
    except QueryRefusedError as error:
        yield _right(error, "REPLICATION SLAVE", "may not read the binlog", user)
        return
    for other in replicas:
        if int(other.get("Server_Id") or other.get("Server_id") or 0) != own:
            continue
        # A killed incsnap may still be listed. The server ends its connection when we connect with the same id.
        ours = other.get("Host") == "incsnap"
        problem = f"{own} is in use by {'another incsnap, perhaps one that was killed' if ours else 'a replica'}"
        repair = "Stop it, or set database.server.id to a number that no other replica has"
        if ours:
            repair = (
                "Is this job running elsewhere? Stop it there. A job with another topic.prefix needs a"
                " database.server.id of its own"
            )
        yield Finding("database.server.id", problem, repair, "warning" if ours else "error")


def _right(error: QueryRefusedError, right: str, lack: str, user: str) -> Finding:
    """Return the finding that the user lacks the privilege `right`."""
    if error.code in NO_PRIVILEGE:
        return Finding("privileges", f"{user} {lack}", f"GRANT {right} ON *.* TO {user};")
    return Finding("privileges", error.message, f"Check that {user} has {right}")


def _logged(connection: Connection[Any], settings: Settings, variables: dict[str, str]) -> Iterable[Finding]:
    """Yield findings about captured databases that binlog-do-db or binlog-ignore-db keep out of the binlog."""
    only, ignored = watermarks.logged_databases(connection)
    if not only and not ignored:
        return
    if variables.get("binlog_row_metadata") == "MINIMAL":
        problem = (
            "it is 'MINIMAL', and statements may be missing in the binlog (binlog-do-db, binlog-ignore-db), so the"
            " columns of a row are unknown"
        )
        yield Finding("binlog_row_metadata", problem, "SET PERSIST binlog_row_metadata = 'FULL';")
    for database in dict.fromkeys(table.database for table in catalog.tables(connection, settings.tables)):
        if database in ignored or (only and database not in only):
            problem = f"changes of {database} are not written to the binlog"
            yield Finding("binlog_do_db", problem, "Start mysqld without binlog-do-db and binlog-ignore-db for it")


def _purged(connection: Connection[Any], offset_gtids: GtidSet | None, settings: Settings) -> Iterable[Finding]:
    """Yield a finding if the binlog no longer has all transactions after the offset."""
    if offset_gtids is None:
        return
    missing = watermarks.purged(connection) - offset_gtids
    if missing:
        problem = f"the binlog no longer holds {missing}, which was not delivered yet"
        repair = (
            "Start with snapshot.mode=when_needed, which reads all tables again; or with a new checkpoint.location,"
            " and signal execute-snapshot"
        )
        snapshot = settings.snapshot
        begins_again = snapshot.begins_again
        if begins_again:
            reads = "reads all tables" if snapshot.reads_at_start else "reads no rows: these changes are not sent"
            sends = "sends what differs" if snapshot.compares_behind_a_gap else reads
            repair = f"No action needed: with snapshot.mode={snapshot.mode} the job begins again and {sends}"
        yield Finding("gtid_purged", problem, repair, "warning" if begins_again else "error")


def _start_place(connection: Connection[Any], settings: Settings) -> Iterable[Finding]:
    """Yield a finding if the job cannot begin at the place that the settings name.

    A time is not checked here: its place in the binlog is found when the job starts.
    """
    if not settings.start.is_given or settings.start.time_us:
        return
    try:
        start_gtids(connection, settings.start)
    except ConfigError as error:
        name, _, problem = error.message.partition(": ")
        yield Finding(name, problem, error.hint)


def _signal_table(connection: Connection[Any], settings: Settings, user: str) -> Iterable[Finding]:
    """Yield findings about the signal table: its name, its columns and their types."""
    table = settings.tables.signal_table
    if table is None:
        return
    shape, lack, repair = shape_or_lack(connection, table)
    if shape is None:
        seen = f"or, if it exists: GRANT SELECT ON {table.sql} TO {user};"
        yield Finding("signal.data.collection", f"{lack}, or the user may not see it", f"{repair} {seen}")
        return
    if shape.id != table:
        # With lower_case_table_names a SELECT finds the table in any letter case, but the binlog has one spelling.
        problem = f"{table} is named {shape.id} on this server, and signals are read from that name"
        yield Finding("signal.data.collection", problem, f"Set signal.data.collection={shape.id}")
    if len(shape.columns) != 3:
        problem = f"{table} has {len(shape.columns)} columns; it must have three: id, type, data"
        yield Finding("signal.data.collection", problem, f"DROP TABLE {table.sql}; {creation(table)}")
        return
    for column in shape.columns:
        if column.type not in _TEXT:
            problem = f"column {column.name} of {table} is {column.type.upper()} and must hold text"
            repair = f"ALTER TABLE {table.sql} MODIFY {column.name} VARCHAR(2048);"
            yield Finding("signal.data.collection", problem, repair)


def _tables(
    connection: Connection[Any],
    settings: Settings,
    user: str,
    variables: dict[str, str],
    of_tools: Collection[str],
) -> Iterable[Finding]:
    """Yield findings about the captured tables and the patterns that select tables and columns.

    A job does not read the tables of tools for online schema changes, so nothing is asked of them.
    """
    existing = captured_tables(connection, settings)
    included = [table for table in existing if table.folded not in of_tools]
    for pattern in settings.tables.without_match(included):
        problem = f"{pattern} matches no table that {user} may see"
        yield Finding("table.include.list", problem, "Correct the pattern, or grant SELECT on the table", "warning")
    captured = [table for table in included if table != settings.tables.signal_table]
    if not captured:
        problem = f"no table is included that {user} may see"
        repair = "Correct database.include.list and table.include.list, or GRANT SELECT ON the databases"
        yield Finding("tables", problem, repair, "warning")
    shapes = catalog.shapes_of(connection, included)
    if captured:
        columns = (
            f"{table}.{column.name}" for table in captured if table in shapes for column in shapes[table].columns
        )
        for setting, pattern in settings.columns.without_match(columns):
            problem = f"{pattern} matches no column of the tables that are captured"
            yield Finding(setting, problem, "Write database.table.column, each a regular expression", "warning")
    for table, shape in shapes.items():
        refused = may_select(connection, table, user)
        if refused is not None:
            # information_schema hides columns that the user may not read. So other findings would be guesses.
            yield refused
        else:
            yield from _shape(shape, settings.columns, is_signal=table == settings.tables.signal_table)
    yield from cascade_findings(connection, variables, set(captured))


def may_select(connection: Connection[Any], table: TableId, user: str) -> Finding | None:
    """Return the finding that the user may not read the table, or None."""
    try:
        query(connection, f"SELECT * FROM {table.sql} LIMIT 0")
    except QueryRefusedError as error:
        if error.code in (ER.TABLEACCESS_DENIED_ERROR, ER.COLUMNACCESS_DENIED_ERROR):
            return Finding("privileges", f"{user} may not read {table}", f"GRANT SELECT ON {table.sql} TO {user};")
        if error.code == ER.NO_SUCH_TABLE:
            return None  # the table was dropped meanwhile
        return Finding("tables", f"{table} cannot be read: {error.message}", "See the server's error", "warning")
    return None


def _shape(shape: TableShape, rules: ColumnRules, *, is_signal: bool) -> Iterable[Finding]:
    """Yield findings about the columns and the key of a table."""
    table, view = shape.id, view_of(shape, rules)
    for index in sorted(view.needed):
        try:
            describe(shape.columns[index], table)
        except UnsupportedType as error:
            yield Finding("types", error.message, error.hint)
    if not view.identity and not is_signal:
        lacks = f"{table} has no primary key, nor a unique key without NULLs"
        problem = f"{lacks}: its changes are streamed without key, and it is read only by a surrogate-key"
        repair = f"ALTER TABLE {table.sql} ADD PRIMARY KEY (...); or name columns with message.key.columns"
        yield Finding("primary key", problem, repair, "warning")


def account(connection: Connection[Any]) -> str:
    """Return the account of this session as GRANT statements write it."""
    name, _, host = str(query(connection, "SELECT CURRENT_USER()")[0][0]).rpartition("@")
    return f"'{name}'@'{host}'"
