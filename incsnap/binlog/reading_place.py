"""Where in one server's log the reading stands."""

from __future__ import annotations

from incsnap.events import BinlogPosition, StreamPosition, base_name, begun_anew, file_number


class ReadingPlace:
    """``file`` and ``pos``: what is read next; they jump back to a file's beginning when a dump begins. ``position``:
    how far the log was read, which never goes back in one binlog. ``server_uuid``: whose binlog it is, "" before the
    first connection of a start without one. All are moved by the methods alone.
    """

    def __init__(self, start: StreamPosition) -> None:
        self.file = start.file
        self.pos = start.pos
        self.server_uuid = start.server_uuid
        self.position = start.at

    def named(self, pos: int) -> str:
        """A place in the file that is read, for messages."""
        return f"{self.file}:{pos}"

    def __str__(self) -> str:
        return self.named(self.pos)

    def server_begins(self, server_uuid: str) -> None:
        """A dump begins. Of another binlog nothing is known until a rotate event names the first file of the dump;
        transactions in the files before that one are delivered: the server chose it by the delivered set."""
        if server_uuid != self.server_uuid:
            self._another_binlog(server_uuid)
            self.file, self.pos = "", 0

    def file_begins(self, file: str, pos: int) -> None:
        """What follows is of that file. Of another base name the server began its binlog anew, with the old files
        still in its index: numbers of the two have no order."""
        self.advance()
        if self.position.file and base_name(file) != base_name(self.position.file):
            self._another_binlog(begun_anew(self.server_uuid))
        self.file, self.pos = file, pos

    def heartbeat(self, file: str, pos: int) -> None:
        """The server stands there: it is idle, or it left out transactions that were delivered before."""
        if file_number(file) == file_number(self.file) and pos > self.pos:
            self.pos = pos
        elif file_number(file) > file_number(self.file):
            self.file, self.pos = file, pos

    def move_to(self, pos: int) -> None:
        """The events before that were read, but perhaps not handed on yet."""
        self.pos = pos

    def advance(self) -> None:
        """All that was read was handed on."""
        here = BinlogPosition(self.file, self.pos, self.server_uuid)
        if self.position < here:
            self.position = here

    def _another_binlog(self, server_uuid: str) -> None:
        self.server_uuid = server_uuid
        self.position = BinlogPosition("", 0, server_uuid)
