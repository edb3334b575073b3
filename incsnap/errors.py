"""The errors of incsnap, as a tree.

    IncsnapError                 what happened to which thing, and (`hint`) what to do next
    ├── ConfigError              a setting is missing, unknown or has a wrong value
    ├── PreflightFailed          the servers are not ready for the job; the message has every finding
    ├── ServerUnreachable        MySQL, Kafka or the registry does not answer
    │   └── ServerAway           nothing answers there, so a start waits; not a refused login
    ├── StoreFailed              the object store with the checkpoint does not answer, or refuses
    │   └── StoreRefused         the bucket does not exist, or the credentials have no right to it
    ├── OffsetError              the saved offset cannot be read or used
    │   └── GtidsPurged          the binlog no longer has what the offset needs
    ├── UnsupportedType          a column's type is unknown; nothing is guessed
    ├── ValueRefused             the settings or the schema cannot express a value
    ├── BinlogError              an event cannot be read; the message has file, position and table
    │   └── DefinitionUnknown    the definition of a table when its rows were written is not certain
    ├── ChunkFailed              a chunk could not be read; it is planned again
    └── SinkError                Kafka refused or fenced the writer

Errors cross the borders of processes (Spark's workers). So they contain plain text only and survive pickling.
"""

from __future__ import annotations

_MAX_VALUE = 80


def shorten(value: object, most: int = _MAX_VALUE) -> str:
    """Return `value` as a text of at most `most` characters, because long keys must not flood a log."""
    text = str(value)
    return text if len(text) <= most else text[: most - 1] + "…"


class IncsnapError(Exception):
    """The base class of all errors.

    `str(error)` says what happened to which thing, `hint` says what the operator can do.
    """

    hint: str = "This is a defect of incsnap; please report it with the log."
    #: Whether the job may start again from the same offset without anybody's help.
    resumable: bool = True

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        if hint is not None:
            self.hint = hint

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.message, self.hint)

    def __str__(self) -> str:
        return self.message


class ConfigError(IncsnapError):
    """An error: a setting is missing, unknown or has a wrong value."""

    hint = "Correct the setting in the properties file and start again."
    resumable = False


class PreflightFailed(IncsnapError):
    """An error: the servers are not ready for the job. The message lists every finding."""

    hint = "Repair the findings above and start again. `incsnap check FILE` repeats only this check."
    resumable = False


class ServerUnreachable(IncsnapError):
    """An error: MySQL, Kafka or the schema registry does not answer."""

    hint = "Check that the server runs and that host, port and credentials are right."


class ServerAway(ServerUnreachable):
    """An error: nothing answers at the server's address, or the connection was lost. To wait may help."""


class StoreFailed(IncsnapError):
    """An error: the object store with the checkpoint does not answer, or refuses a request."""

    hint = "Is the object store reachable from this machine, and may the job's credentials read and write there?"


class StoreRefused(StoreFailed):
    """An error: the bucket does not exist, or the credentials have no right to it. To wait does not help."""


class OffsetError(IncsnapError):
    """An error: the saved offset cannot be read or used."""

    hint = "The checkpoint was written by something else. Start with a new checkpoint.location."
    resumable = False


class GtidsPurged(OffsetError):
    """An error: the binlog no longer has the transactions after the saved offset."""

    hint = (
        "The binlog no longer holds what the saved offset needs. Start with snapshot.mode=when_needed, which reads all"
        " captured tables again; or with a new checkpoint.location, and signal execute-snapshot for the tables."
    )


class UnsupportedType(IncsnapError):
    """An error: the type of a column is unknown."""

    hint = "Leave the table out with table.exclude.list, or change the column's type."
    resumable = False


class ValueRefused(IncsnapError):
    """An error: the settings or the schema cannot express a value."""

    hint = "Correct the value, or choose modes that can express it."
    resumable = False


class BinlogError(IncsnapError):
    """An error: an event of the binlog cannot be read. The message has file, position and table."""

    hint = "The binlog holds something that cannot be decoded; see file, position and table above."
    resumable = False


class DefinitionUnknown(BinlogError):
    """An error about rows whose columns are not certain. `str(error)` names their place, their table and the reason."""

    hint = (
        "Start again with inconsistent.schema.handling.mode=warn: these rows are left out, and the table is read again"
        " where its definition is certain. Rows that were deleted meanwhile stay in the topic. SET PERSIST"
        " binlog_row_metadata = FULL; (no restart of the server is needed) lets later rows name their columns."
    )


class ChunkFailed(IncsnapError):
    """An error: a chunk could not be read. The chunk is planned again."""

    hint = "incsnap reads the chunk again. If this repeats, see the server's load and error log."


class SinkError(IncsnapError):
    """An error: Kafka refused or fenced the writer. The batch is repeated."""

    hint = "Check the Kafka brokers. The batch is repeated from the same offset, so nothing is lost."
