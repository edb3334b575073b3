"""A store for the events of prepared transactions, in a dict."""

from __future__ import annotations

from collections.abc import Sequence

from incsnap.binlog.xa_parts import XaEvents


class Parts:
    """A store of events in memory. `parts` maps names to events. `written` counts all events put, also dropped ones."""

    def __init__(self) -> None:
        self.parts: dict[str, XaEvents] = {}
        self.written = 0

    def put(self, parts: Sequence[XaEvents]) -> list[str]:
        names = [str(self.written + nth) for nth in range(len(parts))]
        self.written += len(parts)
        self.parts |= zip(names, parts, strict=True)
        return names

    def get(self, name: str) -> XaEvents:
        return self.parts[name]

    def drop(self, names: Sequence[str]) -> None:
        for name in names:
            del self.parts[name]
