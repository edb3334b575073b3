"""A start of the job in the driver: it announces itself, beats, and ends when another start has taken its prefix.

``docs/adr/0018-one-start-of-a-prefix.md`` has the rules; ``incsnap.planner.one_start`` decides by them.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import socket
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, Protocol, TypeVar
from uuid import uuid4

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql.streaming.query import StreamingQuery

from incsnap.checkpoint.files import Files
from incsnap.checkpoint.location import own_part
from incsnap.checkpoint.offsets import QueueFiles
from incsnap.checkpoint.own_starts import keep_start, own_checkpoint
from incsnap.config.settings import Settings
from incsnap.errors import IncsnapError
from incsnap.kafka.announcement_log import AnnouncementLog
from incsnap.kafka.announcements import (
    ALIVE_SECONDS,
    BEAT_SECONDS,
    WATCH_SECONDS,
    Announcement,
    OwnStart,
    PrefixTaken,
    StartFacts,
    first_announcement,
    refuse_another,
)
from incsnap.kafka.client_settings import ClientSettings
from incsnap.kafka.control import committed_numbers, control_topic, recorded_batch
from incsnap.kafka.patience import patiently
from incsnap.kafka.refusals import ClientError, sink_error
from incsnap.kafka.topics import admin_client, ensure_control_topic, partition_counts
from incsnap.planner.choices import choices_digest
from incsnap.planner.one_start import judge
from incsnap.planner.shutting_out import shut_out
from incsnap.planner.taking_over import hand_over, take_over
from incsnap.snapshot.delivered_place import complete_place
from incsnap.snapshot.offset import Offset
from incsnap.spark.prefix_ended import end_query

log = logging.getLogger(__name__)
Result = TypeVar("Result")


class _Ask(Protocol):
    def __call__(self, doing: str, call: Callable[[float], Result]) -> Result: ...


#: Seconds for one look or beat of the thread.
_LOOK_SECONDS = 10.0
#: Seconds for the last beat: a broker that is away must not hold up the end.
_LAST_SECONDS = 3.0
#: Seconds between two looks at a start that may be dead.
_WATCH_PAUSE = 0.5


class PrefixStart:
    """One start of a job. ``ensure`` announces it, ``close`` says that it has ended. Threads may ask the rest."""

    def __init__(self, settings: Settings, *, replace_job: bool = False) -> None:
        self._settings = settings
        self._replace_job = replace_job
        self._root = own_part(settings.checkpoint_location)
        self._client = ClientSettings(settings.kafka.bootstrap_servers, settings.kafka.producer)
        self._choices = choices_digest(settings)
        #: Held while the log is read or written, or the announcement changes.
        self._lock = threading.Lock()
        self._log: AnnouncementLog | None = None
        self._announcement: Announcement | None = None
        self._taken: PrefixTaken | None = None
        self._query: StreamingQuery | None = None
        self._ended_path = ""
        self._ending = threading.Event()
        self._thread: threading.Thread | None = None

    @property
    def own(self) -> OwnStart:
        """What tasks must know of this start."""
        assert self._announcement is not None
        return OwnStart(self._announcement.facts.start, self._announcement.term)

    def ensure(self, buckets: int = 0) -> None:
        """Announce the start and fence all others, unless that is done. The caller holds the checkpoint's lock.

        ``buckets``: how many a new job would have, 0 while that is not known. Without it nothing is done where the
        control topic is missing: it is made with a partition for each bucket, as adding some takes another right.
        Raise ``PrefixTaken`` where another start has the prefix, ``CannotTakeOver`` where ``replace_job`` cannot be
        done exactly, ``SinkError`` and ``ServerUnreachable`` where a server does not answer.
        """
        if self._thread is None and self._begin(buckets):
            self._thread = threading.Thread(target=self._beat, name="incsnap-start", daemon=True)
            self._thread.start()

    def begin(self, job: str, buckets: int) -> None:
        """Announce the job and its buckets: before its query starts. Raise ``SinkError``."""
        with self._lock:
            before = self._announcement
            assert before is not None
            now = replace(before.with_job(job), buckets=max(buckets, before.buckets), pending=False)
            if now != before:
                self._announce(now)

    def follow(self, query: StreamingQuery, ended_path: str) -> None:
        """Beats say from now on what ``query`` has delivered. ``ended_path`` is written if the prefix is taken."""
        self._query, self._ended_path = query, ended_path

    def refuse_if_taken(self) -> None:
        """Raise ``PrefixTaken`` when another start has the prefix."""
        if self._taken is not None:
            raise self._taken

    def cause_of(self, error: IncsnapError) -> IncsnapError:
        """Return the ``PrefixTaken`` behind ``error`` if another start has the prefix; else ``error``.

        The other start may have taken the replication connection before this one has looked again.
        """
        if self._taken is None and self._thread is not None:
            with self._lock, contextlib.suppress(ClientError):
                try:
                    assert self._log is not None
                    refuse_another(self._log.owner(_LOOK_SECONDS), self.own)
                except PrefixTaken as taken:
                    self._taken = taken
        return self._taken or error

    def close(self) -> None:
        """Write a last beat, which says that the start has ended. Never raise."""
        self._ending.set()
        if self._thread is not None:
            self._thread.join()
            self._thread = None
        with self._lock:
            if self._log is None:
                return
            if self._announcement is not None and self._taken is None:
                with contextlib.suppress(IncsnapError, ClientError):
                    last = self._with_place(self._announcement)
                    self._beat_once(replace(last, facts=replace(last.facts, ended=True)), _LAST_SECONDS)
            self._log.close()
            self._log = self._announcement = None

    # -- the announcement

    def _begin(self, new_buckets: int) -> bool:
        """Return False where the control topic is missing and the number of buckets is not known."""
        settings, prefix = self._settings, self._settings.topic_prefix
        admin = admin_client(self._client)
        own = own_checkpoint(settings)
        needed = own.buckets or new_buckets
        if needed:
            ensure_control_topic(admin, prefix, needed, settings.topic_creation.default.replication_factor)
        elif not partition_counts(admin, [control_topic(prefix)]):
            return False
        if self._log is None:
            self._log = AnnouncementLog(self._client, prefix)
        owner = self._look()
        buckets = owner.buckets if owner is not None else partition_counts(admin, [control_topic(prefix)]).popitem()[1]
        state = _State(self._client, prefix, buckets, self._log, self._ask)
        verdict = judge(owner, own, state, replace_job=self._replace_job)
        if verdict.takes_over and owner is not None:
            hand_over(settings, owner.jobs, buckets, own)  # refused here, it has disturbed nobody
        if verdict.warning:
            log.warning("%s", verdict.warning)
        now_ms = round(time.time() * 1000)
        facts = StartFacts(
            uuid4().hex,
            job="" if verdict.takes_over else own.job,
            checkpoint=own.location,
            lock=own.lock,
            host=socket.gethostname(),
            pid=os.getpid(),
            started_ms=now_ms,
            beat_ms=now_ms,
            replaces=verdict.replaces,
        )
        is_own = owner is not None and owner.facts.start in own.starts
        keep_start(Files(self._root), facts.start, [owner.facts.start] if is_own and owner is not None else [])
        with self._lock:
            made = partial(first_announcement, facts=facts, buckets=buckets, pending=verdict.takes_over, is_own=is_own)
            self._announce(made(owner))
            refuse_another(self._look(), self.own)
            # The owner may have announced a new job or more buckets since the first look.
            owner = self._log.before or owner
            self._announce(replace(made(owner), confirmed=True))
            buckets = self._announcement.buckets if self._announcement is not None else buckets
        # Behind the announcement, for whoever looks afterwards gives way; before anything is read or planned.
        shut_out(settings, buckets)
        # What the owner has sent between the first answer and the fence counts too.
        state = _State(self._client, prefix, buckets, None, self._ask)
        verdict = judge(owner, own, state, replace_job=self._replace_job)
        if verdict.takes_over and owner is not None:
            ending = hand_over(settings, owner.jobs, buckets, own)
            if ending is not None:
                take_over(settings, self._root, ending, self.own)
        return True

    def _announce(self, what: Announcement) -> None:
        """Raise ``SinkError``."""
        self._ask("announcing the start", lambda seconds: self._beat_once(what, seconds))

    def _look(self) -> Announcement | None:
        """Raise ``SinkError``."""
        assert self._log is not None
        return self._ask("looking for another start", self._log.owner)

    def _ask(self, doing: str, call: Callable[[float], Result]) -> Result:
        try:
            return patiently(doing, call)
        except ClientError as error:
            raise sink_error(doing, error, control_topic(self._settings.topic_prefix)) from error

    # -- beats

    def _beat(self) -> None:
        """Look, then beat, until the end. A start that was frozen learns here that it was replaced."""
        warned = False
        while not self._ending.wait(BEAT_SECONDS):
            try:
                with self._lock:
                    assert self._log is not None
                    assert self._announcement is not None
                    refuse_another(self._log.owner(_LOOK_SECONDS), self.own)
                    self._beat_once(self._with_place(self._announcement), _LOOK_SECONDS)
                warned = False
            except PrefixTaken as taken:
                log.error("%s", taken.message)
                self._taken = taken
                if self._ended_path:
                    end_query(self._ended_path, taken)
                return
            except ClientError as error:
                if not warned:
                    warned = True
                    log.warning("Kafka does not take the beat of this start: %s; trying again", error)

    def _beat_once(self, what: Announcement, seconds: float) -> None:
        """Write the announcement with the time. The caller holds the lock. Raise ``ClientError``."""
        assert self._log is not None
        what = replace(what, facts=replace(what.facts, beat_ms=round(time.time() * 1000)))
        self._log.announce(what, seconds)
        self._announcement = what

    def _with_place(self, what: Announcement) -> Announcement:
        """Return the announcement with the newest batch that the query has done in all buckets."""
        offset = self._done()
        known = what.facts.place
        if offset is None or offset.batch < 1 or offset.job_id != what.facts.job:
            return what
        if known is not None and known.get("batch") == offset.batch:
            return what
        place = {"batch": offset.batch, **complete_place(offset, self._choices)}
        return replace(what, facts=replace(what.facts, place=place))

    def _done(self) -> Offset | None:
        """Return the end of the newest batch that Spark has finished; None where that is not known."""
        query = self._query
        if query is None:
            return None
        try:
            progress: Any = query.lastProgress
            text = progress["sources"][0]["endOffset"] if progress else None
            content = json.loads(text) if isinstance(text, str) else text
            return Offset.load(content, QueueFiles(Files(self._root))) if content else None
        # The JVM may have ended, and files of queues may be gone: then the beat says what the last one said.
        except (IncsnapError, PySparkException, Py4JError, OSError, KeyError, IndexError, ValueError):
            return None


class _State:
    """``PrefixState``: what a start asks of Kafka before it announces."""

    def __init__(
        self, client: ClientSettings, prefix: str, buckets: int, log_: AnnouncementLog | None, ask: _Ask
    ) -> None:
        """``log_`` is None behind the fence: whoever was alive before cannot deliver any more."""
        self._client = client
        self._prefix = prefix
        self._buckets = buckets
        self._log = log_
        self._ask = ask

    def is_alive(self, owner: Announcement, *, wait: bool) -> bool:
        """Return the answer at once for a young beat, unless ``wait``; else watch for another beat."""
        facts = owner.facts
        if facts.ended or self._log is None:
            return False
        if facts.is_young and not wait:
            return True
        log.info("Looking whether %s still beats", facts)
        young_seconds = facts.beat_ms / 1000 + ALIVE_SECONDS - time.time() if wait else 0.0
        deadline = time.monotonic() + min(ALIVE_SECONDS, max(WATCH_SECONDS, young_seconds))
        while time.monotonic() < deadline:
            time.sleep(_WATCH_PAUSE)
            now = self._ask("looking for another start", self._log.owner)
            if now is None or now.facts.ended:
                return False
            if now.facts.start != facts.start or now.facts.beat_ms != facts.beat_ms:
                return True
        return False

    def delivered(self, job: StartFacts) -> int | None:
        """Return the newest batch of the job in any bucket: by the group's offsets, or by records if those are gone."""
        if not job.job:
            return None
        doing = "reading what an earlier job has sent"
        numbers = self._ask(doing, partial(committed_numbers, self._client, self._prefix, job.job, self._buckets))
        if numbers:
            return max(numbers.values())
        records = [
            self._ask(doing, partial(recorded_batch, self._client, self._prefix, job.job, bucket))
            for bucket in range(self._buckets)
        ]
        return max((each.batch for each in records if each is not None), default=None)

    def has_records(self) -> bool:
        """Whether any bucket's partition of the control topic was ever written to, before this start announced."""
        return self._log is not None and self._ask(
            "looking for earlier jobs", partial(self._log.was_written_to, self._buckets)
        )
