"""The place in a server's binlog up to which the stream was read."""

from __future__ import annotations

from incsnap.events import BinlogPosition, StreamPosition, base_name, begun_anew, file_number

#: Most files whose time of creation is remembered.
_FILES = 1_000


class ReadingPlace:
    """The place in a binlog up to which the stream was read.

    `file` and `pos` are the place of the next event. They go back to the beginning of a file when a dump begins.
    `position` is how far the binlog was read, and never goes back in one binlog. `server_uuid` is the name of the
    binlog, "" before the first connection of a start without one. Only the methods change these attributes.
    """

    def __init__(self, start: StreamPosition) -> None:
        self.file = start.file
        self.pos = start.pos
        self.server_uuid = start.server_uuid
        self.position = start.at
        #: (binlog, file) -> when the server began the file, in seconds since 1970, for the last `_FILES` files.
        self._begun = {(start.server_uuid, start.file): start.begun} if start.begun else {}

    def named(self, pos: int) -> str:
        """Return a place in the present file as text, for messages."""
        return f"{self.file}:{pos}"

    def __str__(self) -> str:
        return self.named(self.pos)

    def server_begins(self, server_uuid: str) -> None:
        """Begin a dump from the binlog `server_uuid`.

        In another binlog no place is known until a ROTATE event names the dump's first file. The server chose that file
        by the delivered GTIDs, so all transactions in earlier files are delivered.
        """
        if server_uuid != self.server_uuid:
            self._another_binlog(server_uuid)
            self.file, self.pos = "", 0

    def file_begins(self, file: str, pos: int) -> None:
        """Begin to read `file` at `pos`.

        A file with another base name means that the server has begun its binlog anew. The old files may still be in the
        server's index, and their numbers have no order with the new ones.
        """
        self.advance()
        if self.position.file and base_name(file) != base_name(self.position.file):
            self._another_binlog(begun_anew(self.server_uuid))
        self.file, self.pos = file, pos

    def note_begun(self, seconds: int) -> None:
        """Note when the server began the present file, in seconds since 1970."""
        self._begun[self.server_uuid, self.file] = seconds
        if len(self._begun) > _FILES:
            del self._begun[next(iter(self._begun))]

    def begun(self, at: BinlogPosition) -> int:
        """Return when the server began the file of `at`, in seconds since 1970; 0 if the time is unknown.

        The time is known for files that were read since the start, and for the file of the start. A later connection
        compares this time, to see whether the server has begun its binlog anew.
        """
        return self._begun.get((at.server_uuid, at.file), 0)

    def heartbeat(self, file: str, pos: int) -> None:
        """Move to a place that the server reports.

        The server is idle, or it skipped transactions that were delivered before.
        """
        if file_number(file) == file_number(self.file) and pos > self.pos:
            self.pos = pos
        elif file_number(file) > file_number(self.file):
            self.file, self.pos = file, pos

    def move_to(self, pos: int) -> None:
        """Note that the events before `pos` were read. Their segments may not be yielded yet."""
        self.pos = pos

    def advance(self) -> None:
        """Move `position` to the present place: all segments before it were yielded."""
        here = BinlogPosition(self.file, self.pos, self.server_uuid)
        if self.position < here:
            self.position = here

    def _another_binlog(self, server_uuid: str) -> None:
        self.server_uuid = server_uuid
        self.position = BinlogPosition("", 0, server_uuid)
