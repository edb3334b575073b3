"""The servers whose transactions a connector takes: `gtid.source.includes` and `gtid.source.excludes`.

The offset of such a connector lacks the transactions of all other servers. Debezium completes it at each start, and
does not send their rows. So a take-over counts what these servers have executed as done.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from incsnap.config.patterns import split_list
from incsnap.gtid import GtidSet

_INCLUDES, _EXCLUDES = "gtid.source.includes", "gtid.source.excludes"


@dataclass(frozen=True, slots=True)
class GtidSources:
    """A choice of servers by their UUIDs. Patterns are regular expressions for a whole UUID."""

    includes: tuple[str, ...] = ()  #: (): all
    excludes: tuple[str, ...] = ()  #: (): none

    @classmethod
    def of(cls, connector: Mapping[str, str]) -> GtidSources:
        """Return the choice in a connector's settings."""
        return cls(*(tuple(split_list(connector.get(name, ""))) for name in (_INCLUDES, _EXCLUDES)))

    def takes(self, uuid: str) -> bool:
        """Whether the connector takes the transactions of the server with this UUID."""
        if self.includes:
            return _matches(self.includes, uuid)
        return not _matches(self.excludes, uuid)

    def completed(self, sent: GtidSet, executed: GtidSet, purged: GtidSet) -> GtidSet:
        """Return the offset's set with what the connector does not send.

        `sent`: set of the offset. `executed`, `purged`: sets of the server. Transactions of other servers count as
        done. So do purged ones of servers that the offset does not know, as in Debezium.

        >>> a, b = "3e11fa47-71ca-11e1-9e33-c80aa9429562", "3e11fa47-71ca-11e1-9e33-c80aa9429563"
        >>> sets = [GtidSet.parse(each) for each in (f"{a}:1-5", f"{a}:1-9,{b}:1-7", "")]
        >>> str(GtidSources(includes=(a,)).completed(*sets)) == f"{a}:1-5,{b}:1-7"
        True
        """
        known = {source for source, _ in sent}
        others = {source: intervals for source, intervals in executed if not self.takes(str(source[0]))}
        unknown = {source: intervals for source, intervals in purged if source not in known}
        return sent | GtidSet(others) | GtidSet(unknown)


#: The choice of all servers.
ALL_SOURCES = GtidSources()


def _matches(patterns: tuple[str, ...], uuid: str) -> bool:
    return any(re.fullmatch(pattern, uuid, re.IGNORECASE) for pattern in patterns)
