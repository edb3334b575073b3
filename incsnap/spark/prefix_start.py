"""A start of the job, in the driver: announces itself, beats, and ends if another start takes its prefix.

`docs/adr/0018-one-start-of-a-prefix.md` has the rules, `incsnap.planner.start_steps` the steps of a start.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import socket
import threading
import time
from dataclasses import replace
from functools import partial
from typing import Any
from uuid import uuid4

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql.streaming.query import StreamingQuery

from incsnap.checkpoint.files import Files
from incsnap.checkpoint.location import own_part
from incsnap.checkpoint.offsets import QueueFiles
from incsnap.checkpoint.own_starts import own_checkpoint
from incsnap.config.settings import Settings
from incsnap.errors import IncsnapError, SinkError
from incsnap.kafka.announcement_log import AnnouncementLog
from incsnap.kafka.announcements import BEAT_SECONDS, Announcement, OwnStart, PrefixTaken, StartFacts, refuse_another
from incsnap.kafka.client_settings import ClientSettings
from incsnap.kafka.control import control_topic
from incsnap.kafka.refusals import ClientError, SinkRefused
from incsnap.kafka.topics import admin_client, ensure_control_topic, partition_counts
from incsnap.kafka.unannounced import UnannouncedWriters
from incsnap.monitoring.outages import KAFKA, Outages
from incsnap.monitoring.signal_sender import channel_places
from incsnap.planner.choices import choices_digest
from incsnap.planner.kafka_state import ask
from incsnap.planner.kafka_steps import KafkaSteps
from incsnap.planner.start_steps import own_the_prefix
from incsnap.snapshot.context import SnapshotContext
from incsnap.snapshot.delivered_place import complete_place, snapshots_at
from incsnap.snapshot.offset import Offset
from incsnap.spark.prefix_taken import end_query
from incsnap.version import __version__
from signals import chosen

log = logging.getLogger(__name__)

#: Most seconds for one look at the log, or one beat.
_LOOK_SECONDS = 10.0
#: The snapshots of a job that has none.
_NO_SNAPSHOT = SnapshotContext()
#: Most seconds for the last beat: a broker that is away must not delay the end.
_LAST_SECONDS = 3.0


class PrefixStart:
    """A start of a job.

    `ensure` announces the start, `begin` names its job, and `close` says that it has ended. Other threads may call all
    other methods.
    """

    def __init__(self, settings: Settings, outages: Outages, *, replace_job: bool = False) -> None:
        self._settings = settings
        self._outages = outages
        self._replace_job = replace_job
        self._root = own_part(settings.checkpoint_location)
        self._client = ClientSettings(settings.kafka.bootstrap_servers, settings.kafka.producer)
        self._choices = choices_digest(settings)
        #: Held while the log is read or written, and while the announcement changes.
        self._lock = threading.Lock()
        self._log: AnnouncementLog | None = None
        self._announcement: Announcement | None = None
        self._taken: PrefixTaken | None = None
        self._query: StreamingQuery | None = None
        self._ended_path = ""
        self._ending = threading.Event()
        self._thread: threading.Thread | None = None
        #: The search for jobs of older releases, which do not announce themselves. None until this start has a job.
        self._others: UnannouncedWriters | None = None

    @property
    def own(self) -> OwnStart:
        """Return the id and term of this start, which tasks need."""
        assert self._announcement is not None
        return OwnStart(self._announcement.facts.start, self._announcement.term)

    def ensure(self, buckets: int = 0) -> None:
        """Announce the start and fence all others, unless that is done. The caller holds the checkpoint's lock.

        `buckets`: how many buckets a new job would have; 0 if unknown. The control topic is created with one partition
        for each bucket, because to add partitions later takes another right. With 0 a missing control topic stays
        missing, and nothing is announced.

        Raise PrefixTaken if another start has the prefix. Raise CannotTakeOver if `replace_job` cannot be done exactly.
        Raise SinkError or ServerUnreachable if a server does not answer.
        """
        try:
            begins = self._thread is None and self._begin(buckets)
        except SinkRefused:
            raise
        except SinkError as error:
            self._outages.fails(KAFKA, error.message)
            raise
        if begins:
            self._outages.answers(KAFKA)
            self._thread = threading.Thread(target=self._beat, name="incsnap-start", daemon=True)
            self._thread.start()

    def begin(self, job: str, buckets: int, snapshot: SnapshotContext = _NO_SNAPSHOT) -> None:
        """Announce the job, its number of buckets and its snapshots, before its query starts.

        Raise SinkError if Kafka does not answer.
        """
        with self._lock:
            before = self._announcement
            assert before is not None
            now = before.begun(job, buckets)
            # The batch that ends with `snapshot` may only be planned, so no repair is done yet.
            now = replace(now, facts=replace(now.facts, snapshots={**snapshots_at(snapshot), "repairs": {}}))
            if now != before:
                self._announce(now)
            if self._others is None or self._others.job != job:
                self._look_for_others(job)

    def follow(self, query: StreamingQuery, ended_path: str) -> None:
        """Let beats say from now on what `query` has delivered. If the prefix is taken, write the file `ended_path`."""
        self._query, self._ended_path = query, ended_path

    def refuse_if_taken(self) -> None:
        """Raise PrefixTaken if another start has the prefix."""
        if self._taken is not None:
            raise self._taken

    def cause_of(self, error: IncsnapError) -> IncsnapError:
        """Return the PrefixTaken behind `error` if another start has the prefix; else return `error`.

        The other start may have taken the replication connection before this start has looked at the log again.
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
            if self._others is not None:
                self._others.close()
                self._others = None
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
        """Announce the start. Return False if the control topic is missing and the number of buckets is unknown."""
        settings, prefix = self._settings, self._settings.topic_prefix
        if self._log is None:
            self._log = AnnouncementLog(self._client, prefix)
            self._log.producer()
        admin = admin_client(self._client)
        own = own_checkpoint(settings)
        needed = own.buckets or new_buckets
        if needed:
            ensure_control_topic(admin, prefix, needed, settings.topic_creation.default.replication_factor)
        elif not partition_counts(admin, [control_topic(prefix)]):
            return False
        now_ms = round(time.time() * 1000)
        facts = StartFacts(
            uuid4().hex,
            checkpoint=own.location,
            lock=own.lock,
            host=socket.gethostname(),
            pid=os.getpid(),
            started_ms=now_ms,
            beat_ms=now_ms,
            release=__version__,
            signals={"fields": list(chosen.FIELDS), "channels": channel_places(settings)},
        )
        with self._lock:
            steps = KafkaSteps(settings, own, self._log, self._announce, lambda: self.own)
            own_the_prefix(steps, own, facts, replace_job=self._replace_job)
        return True

    def _announce(self, what: Announcement) -> None:
        """Write the announcement. Raise SinkError if Kafka does not answer."""
        topic = control_topic(self._settings.topic_prefix)
        ask("announcing the start", topic, lambda seconds: self._beat_once(what, seconds))

    def _look_for_others(self, job: str) -> None:
        """Begin to look for jobs that do not announce themselves. Raise SinkError if Kafka does not answer."""
        if self._others is not None:
            self._others.close()
        prefix = self._settings.topic_prefix
        made = partial(UnannouncedWriters, self._client, prefix, job)
        self._others = ask("looking for jobs of older releases", control_topic(prefix), made)

    # -- beats

    def _beat(self) -> None:
        """Look at the log, then beat, until the end.

        A start whose process was frozen learns here that it was replaced.
        """
        while not self._ending.wait(BEAT_SECONDS):
            try:
                with self._lock:
                    assert self._log is not None
                    assert self._announcement is not None
                    # The control records are read before the owner, because a start that announces itself owns the
                    # prefix before it writes.
                    other = self._others.seen() if self._others is not None else ""
                    refuse_another(self._log.owner(_LOOK_SECONDS), self.own)
                    _refuse_unannounced(other)
                    self._beat_once(self._with_place(self._announcement), _LOOK_SECONDS)
                self._outages.answers(KAFKA)
            except PrefixTaken as taken:
                log.error("%s", taken.message)
                self._taken = taken
                if self._ended_path:
                    end_query(self._ended_path, taken)
                return
            except ClientError as error:
                topic = control_topic(self._settings.topic_prefix)
                self._outages.fails(KAFKA, f"the heartbeat of this job on {topic}: {error}")

    def _beat_once(self, what: Announcement, seconds: float) -> None:
        """Write the announcement with the current time. The caller holds the lock. Raise ClientError."""
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
        if known is None or known.get("batch") != offset.batch:
            known = {"batch": offset.batch, **complete_place(offset, self._choices)}
        return replace(what, facts=replace(what.facts, place=known, snapshots=snapshots_at(offset.snapshot)))

    def _done(self) -> Offset | None:
        """Return the end of the newest batch that Spark has finished; None if unknown."""
        query = self._query
        if query is None:
            return None
        try:
            progress: Any = query.lastProgress
            text = progress["sources"][0]["endOffset"] if progress else None
            content = json.loads(text) if isinstance(text, str) else text
            return Offset.load(content, QueueFiles(Files(self._root))) if content else None
        # The JVM may have ended, and queue files may be gone. The beat then repeats the place of the last one.
        except (IncsnapError, PySparkException, Py4JError, OSError, KeyError, IndexError, ValueError):
            return None


def _refuse_unannounced(job: str) -> None:
    """Raise PrefixTaken if `job` is not "": the id of a job that writes to the prefix and does not announce itself."""
    if job:
        raise PrefixTaken(
            f"A job of an older release of incsnap (job id {job}) writes to the topics of this topic.prefix. The two"
            " jobs have fenced each other. Changes since the start of this job may have been sent twice",
            "Stop the job of the older release, then start this one again (docs/upgrade.md).",
        )
