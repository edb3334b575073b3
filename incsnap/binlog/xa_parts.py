"""An XA transaction with its events, and the store in which its events survive the process."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

import numpy as np

from incsnap.binlog.protocol.frames import Longs


class XaEvents(NamedTuple):
    """Events of an XA transaction in binlog order, joined. Each has its header and body, without checksum."""

    payload: bytes  #: event i is `payload[offsets[i]:offsets[i + 1]]`
    offsets: Longs  #: one more element than events
    positions: Longs  #: position of each event in its file


class PartStore(Protocol):
    """A store in which events survive the process."""

    def put(self, parts: Sequence[XaEvents]) -> list[str]:
        """Store the parts and return their names. They are on the disk when the call returns."""

    def get(self, name: str) -> XaEvents:
        """Return a stored part. Raise an IncsnapError if the part is gone."""

    def drop(self, names: Sequence[str]) -> None:
        """Delete parts that no offset has named."""


@dataclass(slots=True)
class XaPart:
    """Some events of a transaction: in memory, in the store, or both."""

    events: XaEvents | None  #: None: in the store only
    name: str = ""  #: name in the store; "": in memory only

    @property
    def memory(self) -> int:
        """Return the bytes of the events in memory."""
        return len(self.events.payload) if self.events is not None else 0


@dataclass(slots=True, eq=False)
class XaTransaction:
    """An XA transaction and its events read so far."""

    xid: str  #: its name, in a form that XA COMMIT takes
    gtid: str  #: GTID of the part that XA PREPARE ends
    file: str = ""  #: binlog file of that part
    parts: list[XaPart] = field(default_factory=list)  #: its events of included tables, in order
    captured: str = ""  #: the filter by which these tables were included; "" if no table was left out

    @property
    def memory(self) -> int:
        """Return the bytes of its events in memory."""
        return sum(part.memory for part in self.parts)

    @property
    def names(self) -> tuple[str, ...]:
        """Return the names of its parts in the store."""
        return tuple(part.name for part in self.parts if part.name)

    def join_parts(self) -> None:
        """Join the parts that are only in memory into one part. They are the last ones: stored parts came earlier."""
        alone = [part.events for part in self.parts if not part.name and part.events is not None]
        if len(alone) > 1:
            sizes = np.concatenate([np.diff(each.offsets) for each in alone])
            joined = XaEvents(
                b"".join([each.payload for each in alone]),
                np.concatenate((np.zeros(1, np.int64), np.cumsum(sizes))),
                np.concatenate([each.positions for each in alone]),
            )
            self.parts = [*(part for part in self.parts if part.name), XaPart(joined)]


class XaMark(NamedTuple):
    """The place of an XA PREPARE, XA COMMIT or XA ROLLBACK in the stream."""

    transaction: XaTransaction  #: the transaction that is prepared or ends
    prepared: bool  #: True for XA PREPARE, False for XA COMMIT and XA ROLLBACK
    rolled_back: bool = False  #: True for XA ROLLBACK
