"""The steps by which a start comes to own its `topic.prefix`, in order (`docs/adr/0018-one-start-of-a-prefix.md`).

`StartPort` is everything that a step asks or changes. In a job the port is Kafka and the checkpoint (`kafka_steps`). In
`tests/property/starts_model.py` the port is a model of both.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Protocol, TypeVar

from incsnap.checkpoint.own_starts import OwnCheckpoint
from incsnap.kafka.announcements import Announcement, OwnStart, StartFacts, first_announcement, refuse_another
from incsnap.planner.one_start import PrefixState, judge

log = logging.getLogger(__name__)

#: Most earlier starts that a checkpoint keeps. Any of them may still own the prefix while later starts fail.
_KEPT = 16
#: The place where a replaced job has ended. Each port has its own class for such a place.
Ending = TypeVar("Ending")


class StartPort(Protocol[Ending]):
    """Everything outside of itself that a start asks or changes.

    Each method raises an error if it cannot do its work.
    """

    def current_owner(self) -> Announcement | None:
        """Return the owner of the prefix as the log has it now; None if no start has announced."""

    def owner_before(self) -> Announcement | None:
        """Return the newest record of the previous owner; None if that record was not read."""

    def earlier_buckets(self) -> int:
        """Return the largest number of buckets that jobs of the prefix may have had before any start announced."""

    def state(self, buckets: int, *, fenced: bool) -> PrefixState:
        """Return the object that answers the questions of `judge`.

        `fenced`: whether all `buckets` buckets are fenced.
        """

    def keep_start(self, start: str, before: Sequence[str]) -> None:
        """Write the id `start`, which is about to be announced, into this start's checkpoint.

        Later starts with this checkpoint know by the id that the announcement is their own. `before` are ids of earlier
        starts that the checkpoint keeps.
        """

    def announce(self, what: Announcement) -> None:
        """Write the announcement, and return when the log has it."""

    def fence(self, buckets: int) -> None:
        """Fence all other producers of the first `buckets` buckets. What they have not committed by then never is."""

    def hand_over(self, jobs: Sequence[StartFacts], buckets: int) -> Ending | None:
        """Return where the newest job that has delivered has ended; None if this checkpoint's own job just goes on."""

    def take_over(self, place: Ending) -> None:
        """Give the checkpoint to a new job, which begins at `place`."""


def own_the_prefix(port: StartPort[Ending], own: OwnCheckpoint, facts: StartFacts, *, replace_job: bool) -> None:
    """Announce the start `facts`, fence all other producers, and take over from an earlier job if `judge` says so.

    `own` is the start's checkpoint; the caller holds its lock. Raise PrefixTaken if another start owns the prefix.
    """
    owner = port.current_owner()
    buckets = owner.buckets if owner is not None else port.earlier_buckets()
    verdict = judge(owner, own, port.state(buckets, fenced=False), replace_job=replace_job)
    if verdict.takes_over and owner is not None:
        port.hand_over(owner.jobs, buckets)  # A refusal comes here, before another job is disturbed.
    if verdict.warning:
        log.warning("%s", verdict.warning)
    is_own = owner is not None and owner.facts.start in own.starts
    # The announcement of an earlier start may have had no answer, and come into the log later than this question.
    before = [owner.facts.start] if is_own and owner is not None else []
    port.keep_start(facts.start, list(dict.fromkeys([*before, *own.starts]))[:_KEPT])
    facts = replace(facts, job="" if verdict.takes_over else own.job, replaces=verdict.replaces)
    made = partial(first_announcement, facts=facts, buckets=buckets, pending=verdict.takes_over, is_own=is_own)
    first = made(owner)
    port.announce(first)
    refuse_another(port.current_owner(), OwnStart(first.facts.start, first.term))
    # The owner may have announced a new job or more buckets since the first question.
    owner = port.owner_before() or owner
    announced = replace(made(owner), confirmed=True)
    port.announce(announced)
    # Fence after the announcement: a start that looks from now on gives way. Fence before anything is read or planned.
    port.fence(announced.buckets)
    # Judge again: the owner may have sent batches between the first answer and the fence.
    verdict = judge(owner, own, port.state(announced.buckets, fenced=True), replace_job=replace_job)
    if not verdict.takes_over or owner is None:
        return
    place = port.hand_over(owner.jobs, announced.buckets)
    if place is None:
        return
    if not announced.pending:
        # The owner has delivered since the first answer. If this take-over is cut short, `pending` makes the next start
        # repeat it.
        port.announce(replace(announced, pending=True, facts=replace(announced.facts, replaces=verdict.replaces)))
    port.take_over(place)
