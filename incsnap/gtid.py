"""Sets of global transaction identifiers, including tagged ones.

https://dev.mysql.com/doc/refman/en/replication-gtids-concepts.html#replication-gtids-concepts-gtid-sets The class in
mysql-replication is not used, because it has no difference, compares by order and letter case, and does not support
tags. Watermarks need real set algebra (property test I1).
"""

from __future__ import annotations

import re
import struct
import uuid
from collections.abc import Iterable, Iterator, Mapping

#: Server UUID and tag, both in lower case; the tag is "" if there is none. MySQL calls the pair TSID.
Source = tuple[str, str]
#: First and last transaction number; both belong to the interval.
Interval = tuple[int, int]

_UUID = re.compile(r"[0-9a-f]{8}(-?[0-9a-f]{4}){3}-?[0-9a-f]{12}\Z")
_TAG = re.compile(r"[a-z_][a-z0-9_]{0,31}\Z")
_INTERVAL = re.compile(r"([0-9]+)(?:-([0-9]+))?\Z")


def _merge(intervals: Iterable[Interval]) -> tuple[Interval, ...]:
    """Return the intervals in order, with overlapping and adjacent ones joined."""
    merged: list[Interval] = []
    for first, last in sorted(intervals):
        if merged and first <= merged[-1][1] + 1:
            merged[-1] = (merged[-1][0], max(last, merged[-1][1]))
        else:
            merged.append((first, last))
    return tuple(merged)


def _subtract(left: tuple[Interval, ...], right: tuple[Interval, ...]) -> tuple[Interval, ...]:
    """Return the numbers of `left` that are not in `right`, as intervals."""
    rest: list[Interval] = []
    for first, last in left:
        for cut_first, cut_last in right:
            if cut_last < first or cut_first > last:
                continue
            if cut_first > first:
                rest.append((first, cut_first - 1))
            first = cut_last + 1
            if first > last:
                break
        if first <= last:
            rest.append((first, last))
    return tuple(rest)


class GtidSet:
    """An immutable set of transactions. `a <= b` is containment, `|` is union, `-` is difference."""

    __slots__ = ("_intervals",)

    def __init__(self, intervals: Mapping[Source, Iterable[Interval]] | None = None) -> None:
        merged = ((source, _merge(some)) for source, some in (intervals or {}).items())
        self._intervals: dict[Source, tuple[Interval, ...]] = {source: some for source, some in sorted(merged) if some}

    @classmethod
    def parse(cls, text: str) -> GtidSet:
        """Return the set for MySQL's text form, in any letter case and with line breaks.

        Raise ValueError for another text.
        """
        intervals: dict[Source, list[Interval]] = {}
        for part in text.replace("\n", "").replace("\r", "").split(","):
            words = [word.strip().lower() for word in part.split(":")]
            if words == [""]:
                continue
            if not _UUID.match(words[0]) or len(words) < 2:
                raise ValueError(f"{part.strip()!r} is not part of a GTID set")
            source: Source = (str(uuid.UUID(words[0])), "")
            for word in words[1:]:
                interval = _INTERVAL.match(word)
                if interval:
                    first = int(interval[1])
                    last = int(interval[2] or first)
                    if not 1 <= first <= last < 2**63:
                        raise ValueError(f"{word!r} is not an interval of transaction numbers")
                    intervals.setdefault(source, []).append((first, last))
                elif _TAG.match(word):
                    source = (source[0], word)
                else:
                    raise ValueError(f"{word!r} is neither an interval nor a tag")
        return cls(intervals)

    def __str__(self) -> str:
        parts: list[str] = []
        previous = ""
        for (sid, tag), intervals in self._intervals.items():
            spans = ":".join(str(a) if a == b else f"{a}-{b}" for a, b in intervals)
            name = f":{tag}:{spans}" if tag else f":{spans}"
            if sid == previous:
                parts[-1] += name
            else:
                parts.append(sid + name)
            previous = sid
        return ",".join(parts)

    def __repr__(self) -> str:
        return f"GtidSet.parse({str(self)!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, GtidSet) and self._intervals == other._intervals

    def __hash__(self) -> int:
        return hash(tuple(self._intervals.items()))

    def __bool__(self) -> bool:
        return bool(self._intervals)

    def __len__(self) -> int:
        """Return the number of transactions in the set."""
        return sum(last - first + 1 for _, spans in self for first, last in spans)

    def __iter__(self) -> Iterator[tuple[Source, tuple[Interval, ...]]]:
        return iter(self._intervals.items())

    def __le__(self, other: GtidSet) -> bool:
        return not (self - other)

    def __or__(self, other: GtidSet) -> GtidSet:
        union: dict[Source, list[Interval]] = {}
        for source, intervals in (*self._intervals.items(), *other._intervals.items()):
            union.setdefault(source, []).extend(intervals)
        return GtidSet(union)

    def __sub__(self, other: GtidSet) -> GtidSet:
        return GtidSet(
            {source: _subtract(own, other._intervals.get(source, ())) for source, own in self._intervals.items()}
        )

    def __contains__(self, gtid: tuple[Source, int]) -> bool:
        source, number = gtid
        return any(first <= number <= last for first, last in self._intervals.get(source, ()))

    def encode(self) -> bytes:
        """Return the bytes of the set in the form of COM_BINLOG_DUMP_GTID.

        Without tags these are the number of sources in eight bytes, then for each source 16 bytes of uuid and its
        half-open intervals. With tags each source also has its tag. The lowest and the highest of the first eight bytes
        are then 1, to mark this form, and the six bytes between them hold the number of sources. (sql/rpl_gtid_set.cc,
        `Gtid_set::encode`)
        """
        tagged = any(tag for _, tag in self._intervals)
        count = len(self._intervals)
        head = (1 | count << 8 | 1 << 56) if tagged else count
        out = [struct.pack("<Q", head)]
        for (sid, tag), intervals in self._intervals.items():
            out.append(uuid.UUID(sid).bytes)
            if tagged:
                # A variable-length integer of one byte: the length (at most 32), shifted left by one for the length
                # bit.
                out.append(bytes([len(tag) << 1]) + tag.encode())
            out.append(struct.pack("<Q", len(intervals)))
            out.extend(struct.pack("<QQ", first, last + 1) for first, last in intervals)
        return b"".join(out)

    @classmethod
    def decode(cls, encoded: bytes) -> GtidSet:
        """Return the set from the result of `encode`, which is also the body of a PREVIOUS_GTIDS event.

        Raise struct.error or IndexError if the bytes are cut short.
        """
        (head,) = struct.unpack_from("<Q", encoded)
        tagged = head >> 56 == 1
        at, intervals = 8, dict[Source, list[Interval]]()
        for _ in range(head >> 8 & (1 << 48) - 1 if tagged else head):
            sid, tag = str(uuid.UUID(bytes=encoded[at : at + 16].ljust(16, b"\0"))), ""
            at += 16
            if tagged:
                size = encoded[at] >> 1
                tag = encoded[at + 1 : at + 1 + size].decode()
                at += 1 + size
            (count,) = struct.unpack_from("<Q", encoded, at)
            at += 8
            spans = struct.unpack_from(f"<{2 * count}Q", encoded, at)
            at += 16 * count
            intervals[sid, tag] = [(first, behind - 1) for first, behind in zip(spans[::2], spans[1::2], strict=True)]
        return cls(intervals)
