"""The tables of a job that goes back to a connector: what the connector's schema history needs of them."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Any

from pymysql.connections import Connection

from incsnap.binlog.capture_options import CaptureOptions
from incsnap.binlog.protocol.dump_connection import ConnectionLost
from incsnap.binlog.statement_search import statements_behind
from incsnap.checkpoint.files import Files
from incsnap.checkpoint.first_offset import kept_first_offset
from incsnap.checkpoint.taken_over import taken_over
from incsnap.config.patterns import is_builtin
from incsnap.config.settings import Settings
from incsnap.ddl.table_statements import table_statements
from incsnap.ddl.words import tokens
from incsnap.errors import ConfigError, ServerUnreachable, shorten
from incsnap.events import SchemaChange, StreamPosition
from incsnap.gtid import GtidSet
from incsnap.mysql import catalog, watermarks
from incsnap.mysql.session import dial
from incsnap.mysql.table_definitions import definitions_of
from incsnap.planner.definitions import defines, redefined
from incsnap.planner.schema_changes import capture_options
from incsnap.tables import TableId

RUN_AGAIN = "Start the job (incsnap run), stop it with Ctrl-C or SIGTERM when it has caught up, and try again."
_ALTERED_BEHIND = "a table was altered behind the place where the job has stopped"


def described(
    settings: Settings, connection: Connection[Any], delivered: GtidSet, known: Iterable[str]
) -> tuple[dict[str, str | None], dict[TableId, str]]:
    """Return what the schema history is to have where the job has stopped.

    The first result has the character set of each database; None if the user sees no such database. The second has the
    text of SHOW CREATE TABLE of each table. `known` are the databases that the history names: by default it has all of
    the server, and the connector reads their statements too. Raise ConfigError if a captured table was altered behind
    `delivered`, or if its definition cannot be read.
    """
    whole, only_captured = settings.tables.of_whole_databases(), settings.only_captured_ddl
    others = set() if only_captured else {each for each in known if not is_builtin(each)}
    tables = [
        table
        for table in catalog.all_tables(connection)
        if table.database in others or (settings.tables if only_captured else whole).included(table)
    ]
    definitions = definitions_of(connection, dict.fromkeys(tables, ""))
    if unseen := [table for table in tables if table not in definitions and settings.tables.included(table)]:
        raise ConfigError(
            f"MySQL does not show the definition of {shorten(', '.join(map(str, unseen)))}",
            "Grant the user SELECT on them, so that SHOW CREATE TABLE works.",
        )
    # The statements are asked for behind the definitions: what is altered in between is behind the job's place too.
    options = _options(settings, connection)
    altered = [each for each in statements_since(settings, connection, delivered, options) if defines(each)]
    if captured := [each for each in altered if options.is_captured(each)]:
        raise ConfigError(f"{_ALTERED_BEHIND}: {shorten(captured[0].sql)}", RUN_AGAIN)
    # The connector reads statements about other tables itself. It ignores the ALTER of a table that it does not know.
    kept = {table: each.ddl for table, each in definitions.items() if not redefined(table, altered)}
    charsets = catalog.database_charsets(connection)
    named = {*known, *(table.database for table in tables)}
    return {each: charsets.get(each) for each in named if each in others or settings.tables.has_database(each)}, kept


def what_it_needs(
    settings: Settings, connection: Connection[Any], files: Files, stream: StreamPosition, renewal: str
) -> list[str]:
    """Return what the connector's schema history needs, in sentences.

    `renewal`: how it is renewed by hand. It is the last sentence if that is needed.

    Debezium describes the tables by its schema history up to the offset. Statements that ran while the job did are not
    in it. By default Debezium knows all tables of the server. It fails at the ALTER of a column that it does not know,
    and a table that takes the name of another one must be known too. So statements about all tables count.

    Raise ConfigError if a table was altered behind the job's place: no history would be right then. The connector reads
    such a statement about a table that is not captured itself, if its history is right or the statement may come again.
    """
    first, taken = kept_first_offset(files), taken_over(files)
    begin = GtidSet.parse(taken.delivered) if taken is not None else first.stream.delivered if first else GtidSet()
    try:
        options = _options(settings, connection)
        statements = statements_since(settings, connection, begin, options)
    except (ServerUnreachable, ConnectionLost) as error:
        return [f"Whether tables were altered since the job began is not known: {shorten(error)}.", renewal]
    counted = [each for each in statements if not settings.only_captured_ddl or options.is_captured(each)]
    behind = [each for each in counted if each.origin and not GtidSet.parse(each.origin.gtid) <= stream.delivered]
    changes = [each for each in counted if each not in behind]
    is_anew = bool(changes) or taken is None
    if wrong := [each for each in behind if options.is_captured(each) or (is_anew and not _may_come_again(each))]:
        raise ConfigError(f"{_ALTERED_BEHIND}: {shorten(wrong[0].sql)}", RUN_AGAIN)
    if changes:
        ran = f"{len(changes)} statements about tables ran while the job did, such as: {shorten(changes[0].sql)}."
        return [ran, "The connector's schema history does not have them.", renewal]
    if taken is None:
        return ["The job did not take over from a connector, so there may be no schema history.", renewal]
    return ["No table was altered since the take-over: the connector's schema history is right."]


def _may_come_again(change: SchemaChange) -> bool:
    """Whether Debezium 3.6.1 can read the statement although its schema history has what the statement did already.

    The tables are not captured. Debezium ignores the CREATE TABLE of a table that it knows, the DROP TABLE of one that
    it does not know, and indexes of tables that are not captured. It does not ignore LIKE: the other table may have had
    other columns.

    https://github.com/debezium/debezium/blob/v3.6.1.Final/debezium-connector-mysql/src/main/java/io/debezium/connector/mysql/antlr/listener/CreateTableParserListener.java
    """
    session = change.session
    statements = table_statements(change.sql, session.database, session.sql_mode)
    is_like = any(kind == "word" and text.upper() == "LIKE" for kind, text in tokens(change.sql, session.sql_mode))
    if change.tables is None or not statements or is_like:
        return False
    return all(each.type in ("CREATE", "DROP", "TEXT") or each.index for each in statements)


def _options(settings: Settings, connection: Connection[Any]) -> CaptureOptions:
    """Return the options for the statements about all tables that the connector's schema history has."""
    charsets = tuple(sorted(catalog.charsets(connection).items()))
    return capture_options(settings, charsets, follows=not settings.only_captured_ddl)


def statements_since(
    settings: Settings, connection: Connection[Any], begin: GtidSet, options: CaptureOptions
) -> list[SchemaChange]:
    """Return the statements since `begin` that `options` ask for, except truncations.

    Raise ServerUnreachable if they cannot be read.
    """
    gone = watermarks.purged(connection) - begin
    if gone:
        raise ServerUnreachable(f"the binlog no longer holds {shorten(gone)}")
    at = StreamPosition(begin, "", 0, server_uuid=watermarks.server_uuid(connection))
    until = watermarks.high_watermark(connection)
    changes = statements_behind(partial(dial, settings.mysql), settings.mysql.server_id, options, at, until)
    return [
        each
        for each in changes
        if not each.truncates and (each.origin is None or not GtidSet.parse(each.origin.gtid) <= begin)
    ]


def captured_statements(settings: Settings, connection: Connection[Any], delivered: GtidSet) -> list[SchemaChange]:
    """Return the statements behind `delivered` that may be about captured tables, except truncations.

    Raise ServerUnreachable if they cannot be read.
    """
    options = capture_options(settings, tuple(sorted(catalog.charsets(connection).items())), follows=False)
    return statements_since(settings, connection, delivered, options)
