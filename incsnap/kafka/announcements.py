"""Announcements as values: which start of a `topic.prefix` owns it (`docs/adr/0018-one-start-of-a-prefix.md`).

Each start of a job writes an announcement into partition 0 of the control topic and repeats it as a beat. The order of
the log decides which start owns the prefix. `incsnap.kafka.announcement_log` reads and writes the records.
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
#: Seconds for which a possibly dead start is watched: two beats. The clocks of two machines may differ.
WATCH_SECONDS = 2 * BEAT_SECONDS
_KEY = b"start:"
#: Most earlier jobs that an announcement names.
_EARLIER = 8


class PrefixTaken(ConfigError):
    """An error: another start has the `topic.prefix`, so this start does not begin, or ends."""

    hint = "Stop the other job, or give this job another topic.prefix."


@dataclass(frozen=True, slots=True)
class StartFacts:
    """A start and its job, as other starts see them."""

    start: str  #: start id, a random text
    job: str = ""  #: job id; "" while the start has no job yet
    checkpoint: str = ""  #: `checkpoint.location` as given to the start
    #: Identity of the locked file, or of the bucket. A copy of the checkpoint has another identity. "" if nothing can
    #: be locked.
    lock: str = ""
    host: str = ""  #: name of the start's machine
    pid: int = 0  #: process id on that machine
    started_ms: int = 0  #: when the start began, in ms since 1970 by its own clock
    beat_ms: int = 0  #: when the start wrote this record, in ms since 1970 by its own clock
    ended: bool = False  #: whether the start has ended in order
    replaces: bool = False  #: whether the job took the prefix from another job by `--replace-job`
    #: What the job has delivered completely: `{"batch": number, "offset": ..., "tables": [...]}`; None if unknown.
    place: Mapping[str, Any] | None = None
    release: str = ""  #: release of incsnap that the start runs; "" for one that did not announce it yet
    #: The signals that the start obeys: `{"fields": [...], "channels": {"kafka": ...}}`; None for such a release
    signals: Mapping[str, Any] | None = None
    #: The snapshots at the end of the newest batch (`delivered_place.snapshots_at`); None while the start has no job
    snapshots: Mapping[str, Any] | None = None

    def __str__(self) -> str:
        began = time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(self.started_ms / 1000))
        return f"the job on {self.host} (process {self.pid}, checkpoint {self.checkpoint}, started {began} UTC)"

    @property
    def is_young(self) -> bool:
        """Whether the newest beat is younger than `ALIVE_SECONDS` by this machine's clock.

        A beat that is further in the future says nothing: one of the two clocks is wrong.
        """
        return not self.ended and abs(time.time() * 1000 - self.beat_ms) < ALIVE_SECONDS * 1000


@dataclass(frozen=True, slots=True)
class Announcement:
    """A record of a start on the control topic."""

    facts: StartFacts  #: the start that wrote the record
    term: int = 1  #: number of this owner of the prefix: the term of the previous owner + 1
    confirmed: bool = False  #: whether the start has read its own announcement back as the owner's
    buckets: int = 0  #: most buckets that any start of the prefix had
    pending: bool = False  #: whether the place of the replaced job is still to be taken over
    earlier: tuple[StartFacts, ...] = field(default=())  #: earlier jobs of the prefix, newest first

    @property
    def jobs(self) -> tuple[StartFacts, ...]:
        """The jobs of the prefix that the announcement knows, newest first."""
        return (self.facts, *self.earlier)

    def with_job(self, job: str) -> Announcement:
        """Return a copy whose start has the job `job`.

        The start's previous job becomes an earlier one. Nothing else changes.
        """
        if job == self.facts.job:
            return self
        earlier = (self.facts, *self.earlier)[:_EARLIER] if self.facts.job else self.earlier
        return replace(self, facts=replace(self.facts, job=job, place=None), earlier=earlier)

    def begun(self, job: str, buckets: int) -> Announcement:
        """Return a copy for the moment when the job `job` begins to write with `buckets` buckets.

        As in `with_job`, the previous job becomes an earlier one. The copy is no longer `pending`, and `buckets` never
        falls.
        """
        return replace(self.with_job(job), buckets=max(buckets, self.buckets), pending=False)

    def record(self) -> tuple[bytes, bytes]:
        """Return the record's key and value. Signals and snapshots of earlier jobs are left out."""
        earlier = tuple(replace(each, signals=None, snapshots=None) for each in self.earlier)
        content = asdict(replace(self, earlier=earlier))
        return _KEY + self.facts.start.encode(), json.dumps(content, separators=(",", ":")).encode()


def announcement(key: bytes | None, value: bytes | None) -> Announcement | None:
    """Return the announcement in a record of the control topic, or None for a record of another kind."""
    if key is None or value is None or not key.startswith(_KEY):
        return None
    content = json.loads(value)
    earlier = tuple(_facts(each) for each in content.get("earlier", ()))
    known = {name: content[name] for name in ("term", "confirmed", "buckets", "pending") if name in content}
    return Announcement(_facts(content["facts"]), **known, earlier=earlier)


def _facts(content: Mapping[str, Any]) -> StartFacts:
    """Return the facts of a start. Ignore fields that only a newer release knows."""
    return StartFacts(**{name: content[name] for name in StartFacts.__slots__ if name in content})


def owner_after(owner: Announcement | None, records: Iterable[Announcement]) -> Announcement | None:
    """Return the owner of the prefix after `records`, which follow `owner` in the order of the log."""
    for each in records:
        if owner is None or each.term > owner.term:
            owner = each if owner is None or each.confirmed else _behind(each, owner)
        elif each.term == owner.term:
            # Of two starts that announced at once only the owner confirms. A reader may have begun between the two
            # announcements.
            is_beat, wins = each.facts.start == owner.facts.start, each.confirmed and not owner.confirmed
            owner = each if is_beat or wins else owner
    return owner


def _behind(first: Announcement, before: Announcement) -> Announcement:
    """Return an unconfirmed announcement with the jobs and buckets that the previous owner had at its end.

    The new start may have looked before the previous owner announced a new job, and may die before it looks again.
    """
    is_same = first.facts.job and first.facts.job == before.facts.job
    earlier = before.earlier if is_same or not before.facts.job else before.jobs[:_EARLIER]
    return replace(first, earlier=earlier, buckets=max(first.buckets, before.buckets))


def first_announcement(
    owner: Announcement | None, facts: StartFacts, *, buckets: int, pending: bool = False, is_own: bool = False
) -> Announcement:
    """Return the first announcement of a start, which follows `owner`.

    `facts` describe the start. `buckets` is the number of buckets that its job has, or that an older release left
    behind. `pending`: whether the job must take over the place of an earlier job. `is_own`: whether the owner was an
    earlier start of the same checkpoint.
    """
    if owner is None:
        return Announcement(facts, buckets=buckets, pending=pending)
    before, earlier = owner.facts, owner.earlier
    if is_own and facts.job == before.job:
        # A copy of the checkpoint has planned other batches than those in the place.
        place = before.place if facts.lock and facts.lock == before.lock else None
        facts = replace(facts, replaces=facts.replaces or before.replaces, place=place)
    elif before.job:
        earlier = (before, *earlier)[:_EARLIER]
    return Announcement(facts, owner.term + 1, buckets=max(buckets, owner.buckets), pending=pending, earlier=earlier)


class OwnStart(NamedTuple):
    """The identity of the start that runs a task.

    `refuse_another` compares this identity with the owner of the prefix.
    """

    start: str  #: start id
    term: int  #: term of the start's announcement


def refuse_another(owner: Announcement | None, own: OwnStart) -> None:
    """Raise PrefixTaken if the owner of the prefix is another start than `own`.

    Raise nothing without an owner, or if the owner's term is lower than our own. A lower term means that the control
    topic was deleted and created again. Then the next beat of this start announces it with the right term.
    """
    if owner is None or owner.facts.start == own.start or owner.term < own.term:
        return
    raise PrefixTaken(
        f"Another start of this topic.prefix has taken over: {owner.facts}",
        "Only one job may write to the topics of a topic.prefix. If the other one should not run, stop it and start"
        " this one with --replace-job; else give one of them another topic.prefix.",
    )
