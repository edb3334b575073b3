"""What a round of the ledger of seams is about, and its result."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from tests.seams.shapes import Shape

#: Ways in which the connector ends.
ENDS = ("kill", "stop", "rebalance")


@dataclass(frozen=True, slots=True)
class Plan:
    """The kind of a round."""

    shape: Shape
    partitions: int  #: of each topic
    exactly_once: bool  #: of Kafka Connect
    ends: tuple[str, ...] = ENDS  #: ways in which the connector ends, by turns


@dataclass(slots=True)
class Outcome:
    """The result of a round."""

    name: str
    seams: int = 0  #: in both directions
    hits: Counter[str] = field(default_factory=Counter)  #: seams that truly met a kind
    records: Counter[str] = field(default_factory=Counter)  #: by engine
    repeated: int = 0  #: records that Debezium has repeated
    again: int = 0  #: records that were sent again behind a repetition that was cut short
    seconds: float = 0.0
    wrong: list[str] = field(default_factory=list)
