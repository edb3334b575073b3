"""Announcements: which start of a ``topic.prefix`` owns it, as values (``docs/adr/0018-one-start-of-a-prefix.md``).

Each start of a job writes an announcement into partition 0 of the control topic and repeats it as a beat. The order of
the log decides which start owns the prefix. ``incsnap.kafka.announcement_log`` reads and writes the records.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, NamedTuple

from incsnap.errors import ConfigError

#: Seconds between two beats of a start.
BEAT_SECONDS = 3.0
#: A start whose newest beat is older than this many seconds may be dead.
ALIVE_SECONDS = 20.0
#: Seconds for which a start that may be dead is watched: two beats. Clocks of two machines may differ.
WATCH_SECONDS = 2 * BEAT_SECONDS
_KEY = b"start:"
#: Earlier jobs that an announcement names.
_EARLIER = 8


class PrefixTaken(ConfigError):
    """Another start has the ``topic.prefix``: this one does not start, or ends."""

    hint = "Stop the other job, or give this job another topic.prefix."


@dataclass(frozen=True, slots=True)
class StartFacts:
    """A start and its job, as other starts see them."""

    #: The start id, drawn at random.
    start: str
    #: The job id; "" while the start has no job yet.
    job: str = ""
    #: ``checkpoint.location`` as the start was given it.
    checkpoint: str = ""
    #: Identity of the file that is locked, or of the bucket: a copy has another one. "" where nothing can be locked.
    lock: str = ""
    host: str = ""
    pid: int = 0
    #: When the start began, in milliseconds since 1970, by its own clock.
    started_ms: int = 0
    #: When the start wrote this, in milliseconds since 1970, by its own clock.
    beat_ms: int = 0
    #: Whether the start has ended in order.
    ended: bool = False
    #: Whether the job has taken the prefix from another one by ``--replace-job``.
    replaces: bool = False
    #: What the job has delivered completely: ``{"batch": number, "offset": ..., "tables": [...]}``; None if unknown.
    place: Mapping[str, Any] | None = None

    def __str__(self) -> str:
        began = time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(self.started_ms / 1000))
        return f"the job on {self.host} (process {self.pid}, checkpoint {self.checkpoint}, started {began} UTC)"

    @property
    def is_young(self) -> bool:
        """Whether the newest beat is younger than ``ALIVE_SECONDS`` by this machine's clock."""
        return not self.ended and time.time() * 1000 - self.beat_ms < ALIVE_SECONDS * 1000


@dataclass(frozen=True, slots=True)
class Announcement:
    """One record of a start on the control topic."""

    facts: StartFacts
    #: Counts the owners of the prefix. A start announces the term of the owner + 1.
    term: int = 1
    #: Whether the start has read its own announcement back as the owner's.
    confirmed: bool = False
    #: The most buckets that any start of the prefix had.
    buckets: int = 0
    #: Whether the place of the replaced job is still to be taken over.
    pending: bool = False
    #: Earlier jobs of the prefix, the newest first.
    earlier: tuple[StartFacts, ...] = field(default=())

    @property
    def jobs(self) -> tuple[StartFacts, ...]:
        """All jobs of the prefix that the announcement knows, the newest first."""
        return (self.facts, *self.earlier)

    def with_job(self, job: str) -> Announcement:
        """Return the announcement of the start that has the job ``job`` now: its job before is an earlier one then."""
        if job == self.facts.job:
            return self
        earlier = (self.facts, *self.earlier)[:_EARLIER] if self.facts.job else self.earlier
        return replace(self, facts=replace(self.facts, job=job, place=None), earlier=earlier)

    def record(self) -> tuple[bytes, bytes]:
        """Return the record's key and value."""
        return _KEY + self.facts.start.encode(), json.dumps(asdict(self), separators=(",", ":")).encode()


def announcement(key: bytes | None, value: bytes | None) -> Announcement | None:
    """Return the announcement in a record of the control topic; None for a record of another kind."""
    if key is None or value is None or not key.startswith(_KEY):
        return None
    content = json.loads(value)
    earlier = tuple(_facts(each) for each in content.get("earlier", ()))
    known = {name: content[name] for name in ("term", "confirmed", "buckets", "pending") if name in content}
    return Announcement(_facts(content["facts"]), **known, earlier=earlier)


def _facts(content: Mapping[str, Any]) -> StartFacts:
    """A newer release may write more; what this release does not know is left out."""
    return StartFacts(**{name: content[name] for name in StartFacts.__slots__ if name in content})


def owner_after(owner: Announcement | None, records: Iterable[Announcement]) -> Announcement | None:
    """Return the owner of the prefix behind ``records``, which come in the order of the log behind ``owner``."""
    for each in records:
        if owner is None or each.term > owner.term:
            owner = each if owner is None or each.confirmed else _behind(each, owner)
        elif each.term == owner.term:
            # Of two that announced at once only the owner confirms; a reader may have begun between the two.
            is_beat, wins = each.facts.start == owner.facts.start, each.confirmed and not owner.confirmed
            owner = each if is_beat or wins else owner
    return owner


def _behind(first: Announcement, before: Announcement) -> Announcement:
    """Return an unconfirmed announcement with the jobs and buckets that the owner before it had at its end.

    Its start may have looked before the owner announced a new job, and may be dead before it looks again.
    """
    is_same = first.facts.job and first.facts.job == before.facts.job
    earlier = before.earlier if is_same or not before.facts.job else before.jobs[:_EARLIER]
    return replace(first, earlier=earlier, buckets=max(first.buckets, before.buckets))


def first_announcement(
    owner: Announcement | None, facts: StartFacts, *, buckets: int, pending: bool = False, is_own: bool = False
) -> Announcement:
    """Return what a start writes first, behind the owner ``owner``.

    ``facts`` are the start's own. ``buckets`` is the number that its job has, or that an older release left behind.
    ``pending``: whether the job is to take over the place of an earlier job. ``is_own``: whether the owner was an
    earlier start of the same checkpoint.
    """
    if owner is None:
        return Announcement(facts, buckets=buckets, pending=pending)
    before, earlier = owner.facts, owner.earlier
    if is_own and facts.job == before.job:
        # A copy has planned other batches than those that the place counts.
        place = before.place if facts.lock and facts.lock == before.lock else None
        facts = replace(facts, replaces=facts.replaces or before.replaces, place=place)
    elif before.job:
        earlier = (before, *earlier)[:_EARLIER]
    return Announcement(facts, owner.term + 1, buckets=max(buckets, owner.buckets), pending=pending, earlier=earlier)


class OwnStart(NamedTuple):
    """What a task knows of its own start."""

    #: The start id.
    start: str
    #: The term of the start's announcement.
    term: int


def refuse_another(owner: Announcement | None, own: OwnStart) -> None:
    """Raise ``PrefixTaken`` if the owner of the prefix is another start than ``own``.

    An owner of a lower term means that the topic was made again: the next beat of this start puts that right.
    """
    if owner is None or owner.facts.start == own.start or owner.term < own.term:
        return
    raise PrefixTaken(
        f"Another start of this topic.prefix has taken over: {owner.facts}",
        "Only one job may write to the topics of a topic.prefix. If the other one should not run, stop it and start"
        " this one with --replace-job; else give one of them another topic.prefix.",
    )
