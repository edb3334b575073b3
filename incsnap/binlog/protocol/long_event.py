"""An event of several packets, joined in memory or, for a compressed transaction, in a file.

A rows event must be in memory to be decoded. A compressed transaction need not be, and is the largest event: up to 1 GB
(`max_allowed_packet`). Its rows may be used only after its checksum was read, which is at its end. So it waits in a
file without a name, which ends with the process.
"""

from __future__ import annotations

import mmap
import os
import sys
import tempfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO

from incsnap.binlog.protocol.control_events import TRANSACTION_PAYLOAD
from incsnap.errors import BinlogError

#: The bytes of an event, in memory or in a mapped file. Both are buffers, and a slice of either is `bytes`.
Bytes = bytes | mmap.mmap

#: Index of the event type in a packet's payload: one byte 0x00, then the event, which begins with its time.
_KIND_AT = 5
_EMPTY_HEADER = bytes(4)
_STRETCH = 16 << 20


def let_go(data: Bytes) -> None:
    """Tell the kernel that the pages of a mapped file that were read need not stay in memory."""
    if isinstance(data, mmap.mmap) and sys.platform == "linux":
        data.madvise(mmap.MADV_DONTNEED)


def checksum(data: Bytes, begin: int, end: int) -> int:
    """Return the CRC32 of `data[begin:end]`, read in parts of 16 MiB."""
    crc = 0
    with memoryview(data) as view:
        for at in range(begin, end, _STRETCH):
            crc = zlib.crc32(view[at : min(at + _STRETCH, end)], crc)
            let_go(data)
    return crc


class LongEvent:
    """An event of several packets: call `add` with the payload of each packet, and then `whole`."""

    def __init__(self, first: bytes) -> None:
        self._parts = [_EMPTY_HEADER]
        self._file: IO[bytes] | None = None
        if first[_KIND_AT] == TRANSACTION_PAYLOAD:
            with _reported():
                self._file = tempfile.TemporaryFile(prefix="incsnap-transaction-")  # noqa: SIM115 - `whole` closes it
            self._write(_EMPTY_HEADER)
        self.add(first)

    def add(self, payload: bytes) -> None:
        """Append the payload of a packet. Raise BinlogError if the file cannot be written."""
        if self._file is None:
            self._parts.append(payload)
        else:
            self._write(payload)

    def whole(self, pad: bytes) -> Bytes:
        """Return the event as the data of a `Block` has it: four bytes in place of a packet header, all payloads, and
        `pad`.

        The result is a mapped file for a compressed transaction, and bytes otherwise.
        """
        if self._file is None:
            return b"".join((*self._parts, pad))
        self._write(pad)
        with self._file:
            return mmap.mmap(self._file.fileno(), 0, access=mmap.ACCESS_READ)

    def _write(self, part: bytes) -> None:
        assert self._file is not None
        with _reported():
            self._file.write(part)
            self._file.flush()
            _leave_to_disk(self._file.fileno())


def _leave_to_disk(descriptor: int) -> None:
    """Write the file's pages to the disk now, and free them.

    This is done for each packet: in a group with a memory limit, the kernel kills the process before it has written
    hundreds of megabytes.
    """
    if sys.platform == "linux":
        os.fdatasync(descriptor)
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)


@contextmanager
def _reported() -> Iterator[None]:
    """Raise BinlogError in place of an OSError of the file."""
    try:
        yield
    except OSError as failed:
        raise BinlogError(
            f"a compressed transaction of more than 16 MB cannot be kept in {tempfile.gettempdir()}: {failed}",
            "Make room there (a gigabyte at most), or let TMPDIR name a folder that has it.",
        ) from failed
