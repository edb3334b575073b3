"""The rule that decides whether a start may have its `topic.prefix` (`docs/adr/0018-one-start-of-a-prefix.md`).

The rule asks Kafka through `PrefixState`. It writes nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from incsnap.checkpoint.own_starts import OwnCheckpoint
from incsnap.kafka.announcements import ALIVE_SECONDS, Announcement, PrefixTaken, StartFacts

_WAY_OUT = "start this one with --replace-job: it takes over exactly where the other has ended"


class PrefixState(Protocol):
    """The questions about Kafka whose answers decide whether a start may begin."""

    def is_alive(self, owner: Announcement, *, wait: bool) -> bool:
        """Whether the owner still beats.

        With `wait` a young beat is no proof: wait until the beat is old or another beat comes.
        """

    def delivered(self, job: StartFacts) -> int | None:
        """Return the number of the newest batch that a bucket has committed for the job; None if no bucket has
        committed any."""

    def has_records(self) -> bool:
        """Whether a job has written records to the control topic."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """The verdict that a start may begin, and how."""

    takes_over: bool = False  #: whether the job goes on where another job has ended
    replaces: bool = False  #: whether `--replace-job` was needed
    warning: str = ""  #: what the user must know of an earlier job; "" for nothing


def judge(owner: Announcement | None, own: OwnCheckpoint, prefix: PrefixState, *, replace_job: bool) -> Verdict:
    """Return how the start with the checkpoint `own` may begin. Raise PrefixTaken if the start may not begin."""
    if owner is None:
        return _without_announcements(own, prefix, replace_job=replace_job)
    is_own = owner.facts.start in own.starts
    if is_own and own.lock and own.lock == owner.facts.lock:
        return _of_own_job(owner, own, prefix, replace_job=replace_job)
    refusal = ""
    if prefix.is_alive(owner, wait=is_own):
        refusal = f"{owner.facts} runs with this topic.prefix: its last beat is younger than {ALIVE_SECONDS:.0f} s"
        hint = f"Stop it, or give this job another topic.prefix; or {_WAY_OUT}."
    elif is_own:
        return _of_own_job(owner, own, prefix, replace_job=replace_job)
    elif own.job:
        refusal = _delivered_since(owner, own, prefix)
        hint = f"If this job is to run in its place, {_WAY_OUT}. Else give it another topic.prefix."
    else:
        return _of_new_checkpoint(owner, own, prefix, replace_job=replace_job)
    if not refusal:
        return Verdict()
    if not replace_job:
        raise PrefixTaken(refusal, hint)
    return Verdict(takes_over=True, replaces=True)


def _of_own_job(owner: Announcement, own: OwnCheckpoint, prefix: PrefixState, *, replace_job: bool) -> Verdict:
    """Return the verdict if the owner is an earlier start of this checkpoint, and is dead.

    Raise PrefixTaken if the checkpoint is a copy that is older than what was sent.
    """
    if owner.pending:
        return Verdict(takes_over=True, replaces=owner.facts.replaces)
    if own.job != owner.facts.job and own.lock != owner.facts.lock:
        # The copy was made while the checkpoint was being given to a new job.
        if replace_job:
            return Verdict(takes_over=True, replaces=True)
        raise PrefixTaken(
            f"{owner.facts} has replaced the job of {own.location}",
            f"If this job is to run in its place, {_WAY_OUT}. Else give it another topic.prefix.",
        )
    sent = prefix.delivered(owner.facts) if own.job == owner.facts.job else None
    if sent is None or sent <= own.batch:
        return Verdict()
    if not replace_job:
        raise PrefixTaken(
            f"The job has sent batch {sent} to Kafka, but its checkpoint {own.location} is only at batch {own.batch}:"
            " this is an older copy",
            f"Start with the newest copy; or {_WAY_OUT.replace('other', 'newest batch')}.",
        )
    return Verdict(takes_over=True)


def _of_new_checkpoint(owner: Announcement, own: OwnCheckpoint, prefix: PrefixState, *, replace_job: bool) -> Verdict:
    """Return the verdict if the checkpoint is new and the owner is dead."""
    senders = (each for each in owner.jobs if each.place is not None or prefix.delivered(each) is not None)
    sender = next(senders, None)
    if sender is None:
        return Verdict()
    if replace_job:
        return Verdict(takes_over=True, replaces=True)
    if own.continues_connector:
        return Verdict()
    return Verdict(
        warning=f"An earlier job has written to the topics of this topic.prefix: {sender}, which does not run any"
        " more. This job has a new checkpoint.location and begins anew: it does not continue that job. Rows that were"
        " changed in between come with the snapshot of snapshot.mode; deletions in between do not come. To continue"
        " exactly where that job has ended, start with a new checkpoint.location and --replace-job."
    )


def _without_announcements(own: OwnCheckpoint, prefix: PrefixState, *, replace_job: bool) -> Verdict:
    """Return the verdict if no start has announced: the topics are new, or a job of an older release has written to
    them.

    Raise PrefixTaken if such a job is to be replaced: it did not write down where it ended.
    """
    if own.job or not prefix.has_records():
        return Verdict()
    if replace_job:
        raise PrefixTaken(
            "The job that wrote to the topics of this topic.prefix is of an older release of incsnap, which did not"
            " write down where it ended",
            "Start its own checkpoint with this release once, then replace it; or start without --replace-job, which"
            " begins anew with a snapshot (snapshot.mode).",
        )
    if own.continues_connector:
        return Verdict()
    return Verdict(
        warning="A job of an older release of incsnap has written to the topics of this topic.prefix. Stop it if it"
        " still runs. This job has a new checkpoint.location and begins anew, with the snapshot of snapshot.mode."
    )


def _delivered_since(owner: Announcement, own: OwnCheckpoint, prefix: PrefixState) -> str:
    """Return why the job of the checkpoint may not go on: another job has delivered since; "" if no job has."""
    for job in owner.jobs:
        if job.job == own.job:
            # `sent` may be lower than `own.batch`: batches that have nothing to send are numbered too.
            if job.start in own.starts:
                sent = prefix.delivered(job)
                if sent is None or sent <= own.batch:
                    return ""
                return f"{job} has sent batch {sent}, and {own.location} is an older copy, at batch {own.batch}"
            return f"{job} has gone on with a copy of the checkpoint {own.location}"
        if job.replaces:
            return f"{job} has replaced the job of {own.location}"
        if job.place is not None or prefix.delivered(job) is not None:
            return f"{job} has delivered since the job of {own.location} did"
    return ""
