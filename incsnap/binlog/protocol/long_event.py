"""An event of several packets, put together: in memory, or, where it is a compressed transaction, in a file.

A rows event has to be in memory whole to be decoded. A compressed transaction has not, and is larger than any: a
gigabyte at most (``max_allowed_packet``). Its rows may not be used before its checksum has been read, which is its end;
so it waits in a file without a name, which ends with the process.
"""

from __future__ import annotations

import mmap
import os
import sys
import tempfile
import zlib
from typing import IO

from incsnap.binlog.protocol.control_events import TRANSACTION_PAYLOAD
from incsnap.errors import BinlogError

Bytes = bytes | mmap.mmap
"""Slices of either are bytes, and both are buffers."""

#: In a packet's payload: one byte 0x00, then the event, with its time before its type.
_KIND_AT = 5
_EMPTY_HEADER = bytes(4)
_STRETCH = 16 << 20


def let_go(data: Bytes) -> None:
    """What was looked at of a file need not stay in memory, nor be counted as ours."""
    if isinstance(data, mmap.mmap) and sys.platform == "linux":
        data.madvise(mmap.MADV_DONTNEED)


def checksum(data: Bytes, begin: int, end: int) -> int:
    """CRC32, a stretch at a time."""
    crc = 0
    with memoryview(data) as view:
        for at in range(begin, end, _STRETCH):
            crc = zlib.crc32(view[at : min(at + _STRETCH, end)], crc)
            let_go(data)
    return crc


class LongEvent:
    """``add`` the payloads of its packets; ``whole`` is all of them behind an empty packet's header."""

    def __init__(self, first: bytes) -> None:
        self._parts = [_EMPTY_HEADER]
        self._file: IO[bytes] | None = None
        if first[_KIND_AT] == TRANSACTION_PAYLOAD:
            self._file = _nameless()
            self._write(_EMPTY_HEADER)
        self.add(first)

    def add(self, payload: bytes) -> None:
        if self._file is None:
            self._parts.append(payload)
        else:
            self._write(payload)

    def whole(self, pad: bytes) -> Bytes:
        """With ``pad`` behind it."""
        if self._file is None:
            return b"".join((*self._parts, pad))
        self._write(pad)
        with self._file:
            return mmap.mmap(self._file.fileno(), 0, access=mmap.ACCESS_READ)

    def _write(self, part: bytes) -> None:
        assert self._file is not None
        try:
            self._file.write(part)
            self._file.flush()
            _leave_to_disk(self._file.fileno())
        except OSError as failed:
            raise _refused(failed) from failed


def _leave_to_disk(descriptor: int) -> None:
    """Now, a packet at a time: in a group with a limit of memory the kernel kills before it has written hundreds of
    megabytes."""
    if sys.platform == "linux":
        os.fdatasync(descriptor)
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)


def _nameless() -> IO[bytes]:
    try:
        return tempfile.TemporaryFile(prefix="incsnap-transaction-")
    except OSError as failed:
        raise _refused(failed) from failed


def _refused(failed: OSError) -> BinlogError:
    return BinlogError(
        f"a compressed transaction of more than 16 MB cannot be kept in {tempfile.gettempdir()}: {failed}",
        "Make room there (a gigabyte at most), or let TMPDIR name a folder that has it.",
    )
