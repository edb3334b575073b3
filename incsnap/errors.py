"""What can go wrong, as a tree.

    IncsnapError                 what we were doing, to what, and (``hint``) what you can do
    ├── ConfigError              a setting is missing, unknown or has a wrong value
    ├── PreflightFailed          the servers are not ready for the job; carries every finding
    ├── ServerUnreachable        MySQL, Kafka or the registry does not answer
    ├── StoreFailed              the object store with the checkpoint does not answer, or refuses
    ├── OffsetError              the saved offset cannot be read or used
    │   └── GtidsPurged          the binlog no longer holds what the offset needs
    ├── UnsupportedType          a column's type is not known; nothing is guessed
    ├── ValueRefused             a value has no form under the settings, or in the schema
    ├── BinlogError              an event could not be read: file, position, table
    │   └── DefinitionUnknown    what a table was when its rows were written is not certain
    ├── ChunkFailed              a chunk could not be read; it is planned again
    └── SinkError                Kafka refused or fenced the writer

Errors cross process borders (Spark's workers), so they hold plain text only and survive pickling.
"""

from __future__ import annotations

_MAX_VALUE = 80


def shorten(value: object, most: int = _MAX_VALUE) -> str:
    """``value`` as text of at most 80 characters: keys of rows must not flood a log."""
    text = str(value)
    return text if len(text) <= most else text[: most - 1] + "…"


class IncsnapError(Exception):
    """``str(error)`` is what happened and to what; ``hint`` is what the operator can do."""

    hint: str = "This is a defect of incsnap; please report it with the log."
    #: May the job be started again from the same offset without anybody's help?
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
    hint = "Correct the setting in the properties file and start again."
    resumable = False


class PreflightFailed(IncsnapError):
    hint = "Repair the findings above and start again; `incsnap check FILE` repeats this test alone."
    resumable = False


class ServerUnreachable(IncsnapError):
    hint = "Check that the server runs and that host, port and credentials are right."


class StoreFailed(IncsnapError):
    hint = "Is the object store reachable from this machine, and may the job's credentials read and write there?"


class OffsetError(IncsnapError):
    hint = "The checkpoint was written by something else. Start with a new checkpoint.location."
    resumable = False


class GtidsPurged(OffsetError):
    hint = (
        "The binlog no longer holds what the saved offset needs. Start with snapshot.mode=when_needed, which reads all"
        " captured tables again; or with a new checkpoint.location, and signal execute-snapshot for the tables."
    )


class UnsupportedType(IncsnapError):
    hint = "Leave the table out with table.exclude.list, or change the column's type."
    resumable = False


class ValueRefused(IncsnapError):
    hint = "Correct the value, or choose modes that can express it."
    resumable = False


class BinlogError(IncsnapError):
    hint = "The binlog holds something that cannot be decoded; see file, position and table above."
    resumable = False


class DefinitionUnknown(BinlogError):
    """Rows whose columns are not certain. ``str(error)`` names their place, their table, and the reason."""

    hint = (
        "Start again with inconsistent.schema.handling.mode=warn: these rows are left out, and the table is read again"
        " where its definition is certain. Rows that were deleted meanwhile stay in the topic. SET PERSIST"
        " binlog_row_metadata = FULL; (no restart of the server is needed) lets later rows name their columns."
    )


class ChunkFailed(IncsnapError):
    hint = "The chunk is read again by itself; look at the server if this goes on."


class SinkError(IncsnapError):
    hint = "Look at the Kafka brokers; the batch is repeated from the same offset, nothing is lost."
