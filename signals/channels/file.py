"""The signal file, with one JSON signal a line: `{"id": "a", "type": "execute-snapshot", "data": {...}}`.

Debezium reads the file and truncates it, so it loses lines that are appended in between. Here the file is never
written. The position says how far the file was read, and only whole lines (with a line break) are read. The position
also has a checksum of the file's beginning and its modification time. So a replaced file is read from its start, even
if `echo signal > file` wrote the same text again.
"""

from __future__ import annotations

import logging
import os
import zlib
from decimal import Decimal
from pathlib import Path
from typing import Any

from signals import exact_json
from signals.channels import Polled
from signals.records import SignalRecord

log = logging.getLogger(__name__)

#: Bytes of the beginning that tell two files apart.
_HEAD = 256
#: Bytes that one poll reads, and the longest possible line.
_BLOCK = 1 << 20


class SignalFile:
    """The channel of one signal file."""

    def __init__(self, path: str | Path) -> None:
        self._path = Path(path)
        self._complained = False

    def poll(self, position: Any) -> Polled:
        """Return the records of whole lines after `position` (None at first). A missing file has no records."""
        try:
            with self._path.open("rb") as file:
                return self._read(file, position)
        except FileNotFoundError:
            return Polled((), position)
        except OSError as error:
            if not self._complained:
                log.warning("The signal file %s cannot be read: %s", self._path, error.strerror)
                self._complained = True
            return Polled((), position)

    def _read(self, file: Any, position: Any) -> Polled:
        status = os.fstat(file.fileno())
        start = self._start(file, status, position)
        file.seek(start)
        block = file.read(_BLOCK)
        end = block.rfind(b"\n") + 1
        if not end and len(block) == _BLOCK:
            end = len(block)
            problem = f"a line is longer than {_BLOCK} bytes"
            records = [SignalRecord(None, None, channel="file", position=str(start), problem=problem)]
        else:
            records = _records(block[:end], start)
        if not records and position is not None and start == position[0]:
            return Polled((), position)
        reached = start + end
        return Polled(tuple(records), [reached, _head(file, reached), status.st_mtime_ns])

    @staticmethod
    def _start(file: Any, status: os.stat_result, position: Any) -> int:
        """Return the byte to read from: the byte in `position`, or 0 if the file was replaced."""
        match position:
            case [int(reached), int(head), int(changed)] if reached <= status.st_size:
                rewritten = reached == status.st_size and reached > 0 and changed != status.st_mtime_ns
                return 0 if rewritten or _head(file, reached) != head else reached
            case _:
                return 0


def _head(file: Any, reached: int) -> int:
    """Return a checksum of the file's beginning, up to byte `reached`."""
    file.seek(0)
    return zlib.crc32(file.read(min(reached, _HEAD)))


def _records(block: bytes, start: int) -> list[SignalRecord]:
    records = []
    byte = start
    for line in block.splitlines(keepends=True):
        if line.strip():
            records.append(record_of(line, str(byte), "file"))
        byte += len(line)
    return records


def record_of(text: bytes, position: str, channel: Any) -> SignalRecord:
    """Return the record in a JSON object, in the form of file and topic."""
    try:
        value = exact_json.parsed(text)
    except (ValueError, RecursionError):
        return SignalRecord(None, None, channel=channel, position=position, problem="the signal is not JSON")
    if not isinstance(value, dict):
        return SignalRecord(None, None, channel=channel, position=position, problem="the signal is not a JSON object")
    name, kind = value.get("id"), value.get("type")
    if not all(each is None or isinstance(each, str | int | float | Decimal) for each in (name, kind)):
        problem = "id or type of the signal is not a string"
        return SignalRecord(None, None, channel=channel, position=position, problem=problem)
    return SignalRecord(
        name if name is None else str(name), kind if kind is None else str(kind), value.get("data"), channel, position
    )
