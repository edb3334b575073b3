"""Connections to MySQL whose sessions do not depend on the server's defaults.

Time zone, SQL mode and character set decide what a SELECT prints. So they are fixed for every chunk on every server.
"""

from __future__ import annotations

import ssl
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any, TypeGuard

import pymysql
from pymysql.connections import Connection
from pymysql.constants import ER

from incsnap.config.servers import MySqlSettings
from incsnap.errors import IncsnapError, ServerAway, ServerUnreachable, shorten
from incsnap.mysql.amazon_login import token
from incsnap.mysql.driver_internals import LightConnection, unchecked_tls
from incsnap.mysql.error_codes import GONE, NOT_LET_IN

#: lock_wait_timeout: most seconds that a SELECT waits for an ALTER TABLE. MySQL's default is one year.
METADATA_LOCK_SECONDS = 5
#: Session variables with the value that we need, whatever the server's defaults for new sessions are.
_SETTINGS = (
    # These decide what a SELECT prints and what its text means. Keys of type TIMESTAMP are compared as UTC. A key may
    # be a date such as 2026-11-31. Without the mode nothing is equal to such a date, or less.
    "time_zone = '+00:00'",
    "sql_mode = 'ALLOW_INVALID_DATES'",
    "character_set_client = utf8mb4",
    "character_set_connection = utf8mb4",
    "character_set_results = utf8mb4",
    "lc_time_names = 'en_US'",
    # All rows, however many. DEFAULT would be the server's own limit.
    "sql_select_limit = 18446744073709551615",
    "sql_big_selects = 1",
    "sql_auto_is_null = 0",
    # The low watermark needs SELECTs that see exactly what is committed when they begin. A secondary engine is
    # excluded, because it lags behind. `autocommit` is set although the driver asks for it: the driver trusts the
    # server's greeting, which reports autocommit before the server's default switches it off.
    "autocommit = 1",
    "transaction_isolation = 'REPEATABLE-READ'",
    "transaction_read_only = 0",
    "completion_type = 0",
    "/*!80013 use_secondary_engine = OFF, */ max_execution_time = 0",
    # A chunk reads its index in order, and never more of the index than the chunk. 0 is no limit: 5,000 listed keys of
    # 8 columns need 9 MB, and MySQL walks through the table if it may not use them. 16 columns need 18 MB.
    "range_optimizer_max_mem_size = 0",
    "optimizer_switch = CONCAT('use_invisible_indexes=off' /*!80021 , ',prefer_ordering_index=on' */)",
    f"lock_wait_timeout = {METADATA_LOCK_SECONDS}",
    # Seconds that the server waits for us. Encoding a chunk may take longer than a server's default allows.
    "net_write_timeout = 60",
    "wait_timeout = 28800",
    # Generated invisible primary keys are in every row image, so information_schema must show them. SHOW CREATE TABLE
    # is parsed, and consumers see its text.
    "/*!80030 show_gipk_in_create_table_and_information_schema = ON, */ sql_quote_show_create = 1",
    "show_create_table_verbosity = 0",
)
_SESSION = "SET SESSION " + ", ".join(_SETTINGS)


def connect(settings: MySqlSettings, *, read_timeout: float = 60.0) -> Connection[Any]:
    """Return a new session with autocommit, utf8mb4, UTC and an empty SQL mode.

    `read_timeout` is the most seconds for one read of the socket. Raise ServerUnreachable if the server does not answer
    or refuses the login.
    """
    try:
        return dial(settings, read_timeout=read_timeout)
    except (pymysql.err.MySQLError, OSError, RuntimeError, EOFError) as error:
        raise _unreachable(settings, error) from None


def dial(settings: MySqlSettings, *, read_timeout: float = 60.0) -> Connection[Any]:
    """Return a new session like `connect`, but raise the driver's own errors.

    The tail needs the difference between a lost server and a refusal.
    """
    return LightConnection(
        host=settings.hostname,
        port=settings.port,
        user=settings.user,
        # As bytes, because the driver encodes text as Latin-1. CREATE USER has hashed the bytes of its client, which
        # are UTF-8.
        password=_password(settings).encode(),
        charset="utf8mb4",
        autocommit=True,
        init_command=_SESSION,
        connect_timeout=max(1, round(settings.connect_timeout_seconds)),
        read_timeout=read_timeout,
        write_timeout=read_timeout,
        program_name="incsnap",
        **_tls(settings),
    )


def _password(settings: MySqlSettings) -> str:
    return token(settings) if settings.login == "rds-iam" else settings.password.get_secret_value()


def _tls(settings: MySqlSettings) -> dict[str, Any]:
    """Return PyMySQL's arguments for `database.ssl.mode`.

    Without arguments PyMySQL prefers TLS and falls back to none.
    """
    if settings.ssl_mode == "disabled":
        return {"ssl_disabled": True}
    if settings.ssl_mode == "preferred" and settings.ssl_cert is None:
        return {}
    if settings.ssl_mode.startswith("verify"):
        context = ssl.create_default_context(cafile=settings.ssl_ca)
        # Certificates that MySQL generates have no key identifiers, which Python 3.13 would refuse.
        context.verify_flags &= ~getattr(ssl, "VERIFY_X509_STRICT", 0)
        context.check_hostname = settings.ssl_mode == "verify_identity"
    else:
        context = unchecked_tls()
    if settings.ssl_cert is not None:
        context.load_cert_chain(
            settings.ssl_cert, settings.ssl_key, settings.ssl_key_password.get_secret_value() or None
        )
    return {"ssl": context}


def _unreachable(settings: MySqlSettings, error: Exception) -> ServerUnreachable:
    """Return the error for a failed login or connection, with what to do about it."""
    code, text = error_of(error)
    server = f"MySQL at {settings.address}"
    if code in NOT_LET_IN:
        return ServerUnreachable(
            f"{server} refuses the user {settings.user!r}: {text}",
            "Correct database.user and database.password, or create the user.",
        )
    if code == ER.CON_COUNT_ERROR:
        return ServerUnreachable(f"{server} has too many connections", "Raise max_connections, or stop other clients.")
    # MariaDB and MySQL 5 do not have some variables of our session.
    if code in (ER.UNKNOWN_SYSTEM_VARIABLE, ER.WRONG_VALUE_FOR_VAR):
        return ServerUnreachable(f"{server} is not MySQL 8.0 or later: {text}", "Use MySQL 8.0 or later.")
    if code == ER.HOST_IS_BLOCKED:
        return ServerUnreachable(f"{server} has blocked this host: {text}", "Run FLUSH HOSTS on the server.")
    if isinstance(error, ssl.SSLError) or "SSL" in text or "certificate" in text:
        return ServerUnreachable(
            f"{server}: no TLS connection with database.ssl.mode={settings.ssl_mode}: {text}",
            "Set database.ssl.truststore to the PEM file of the server's CA, or choose another database.ssl.mode.",
        )
    if isinstance(error, FileNotFoundError):
        return ServerUnreachable(
            f"{server}: a file of database.ssl.truststore or database.ssl.keystore does not exist",
            "Name PEM files that exist.",
        )
    return ServerAway(
        f"{server} does not answer: {text}", "Check database.hostname and database.port, and that the server runs."
    )


def error_of(error: Exception) -> tuple[int, str]:
    """Return MySQL's error number (0 without one) and the error's text."""
    if len(error.args) >= 2 and isinstance(error.args[0], int):
        return error.args[0], str(error.args[1])
    return 0, str(error) or type(error).__name__


def is_gone(error: Exception) -> bool:
    """Return True if `error` means that the connection cannot be used any more."""
    return not isinstance(error, pymysql.err.MySQLError) or error_of(error)[0] in GONE


def is_alive(connection: Connection[Any] | None) -> TypeGuard[Connection[Any]]:
    """Return True if there is a connection and the server answers on it. This takes one round trip."""
    if connection is None or not connection.open:
        return False
    try:
        connection.ping(reconnect=False)
    except (pymysql.err.MySQLError, OSError):
        return False
    return True


def close(connection: Connection[Any] | None) -> None:
    """Close the connection if there is one and it is open. Never raise an error."""
    if connection is not None and connection.open:
        with suppress(Exception):  # closing a lost socket may fail
            connection.close()


def query(
    connection: Connection[Any], sql: str, arguments: Sequence[Any] | Mapping[str, Any] | None = None
) -> tuple[tuple[Any, ...], ...]:
    """Return all rows of a small result, for questions about catalog and status. Do not read captured tables with it.

    Raise ServerUnreachable if the connection is lost, and QueryRefusedError if the server refuses the statement.
    """
    with _refusals(sql), connection.cursor() as cursor:
        cursor.execute(sql, arguments)
        return tuple(cursor.fetchall())


class QueryRefusedError(IncsnapError):
    """An error that the server answered with. `code` is MySQL's error number."""

    hint = "See the error number in MySQL's manual."

    def __init__(self, message: str, code: int = 0, hint: str | None = None) -> None:
        super().__init__(message, hint)
        self.code = code

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.message, self.code, self.hint)


def named(connection: Connection[Any], sql: str) -> list[dict[str, Any]]:
    """Return rows as dicts by column name, for SHOW statements whose columns differ between versions.

    Raise ServerUnreachable if the connection is lost, and QueryRefusedError if the server refuses the statement.
    """
    with _refusals(sql), connection.cursor(pymysql.cursors.DictCursor) as cursor:
        cursor.execute(sql)
        return list(cursor.fetchall())


@contextmanager
def _refusals(sql: str) -> Iterator[None]:
    """Raise the driver's errors in the block as ServerUnreachable or QueryRefusedError. `sql` is the statement."""
    try:
        yield
    except (pymysql.err.MySQLError, OSError) as error:
        code, text = error_of(error)
        if is_gone(error):
            raise ServerAway(f"The connection to MySQL was lost: {text}") from None
        raise QueryRefusedError(f"MySQL refuses {shorten(sql)!r}: {text} (error {code})", code) from None
