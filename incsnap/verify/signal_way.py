"""The way to a live job by signals: `execute-snapshot` with the keys, and the job's beats until it has sent them.

The keys are in the signal if they fit into a signal table as Debezium describes it. More keys are in a topic, which
this module creates and deletes. A topic works where the job runs on another machine, and for any channel.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from uuid import uuid4

from confluent_kafka import KafkaException, Producer

from incsnap.config.settings import Settings
from incsnap.errors import IncsnapError, ServerUnreachable
from incsnap.kafka.announcement_log import AnnouncementLog
from incsnap.kafka.announcements import ALIVE_SECONDS, Announcement
from incsnap.kafka.client_settings import ClientSettings
from incsnap.kafka.control import control_topic
from incsnap.kafka.topics import admin_client, ensure_topics
from incsnap.monitoring.signal_sender import send_signal
from incsnap.planner.kafka_state import ask as ask_kafka
from incsnap.snapshot.delivered_place import REPAIR_ID
from incsnap.verify.allowance import Allowance
from incsnap.verify.live_job import ExpectedJob, LiveJob, live_job, paused_by
from incsnap.verify.repair import TableRepair
from signals import exact_json, send
from signals.regex import literal

log = logging.getLogger(__name__)

#: Most bytes of a signal with keys. The column of Debezium's signal table has 2,048 characters.
_SIGNAL_BYTES = 2_000
#: Most keys that are put into a topic at a time.
_FLUSHED = 10_000
_FLUSH_SECONDS = 30.0
#: Milliseconds for which brokers keep a topic of keys that was not deleted.
_KEPT_MS = 7 * 24 * 3_600_000
_PAUSE_SECONDS = 0.5


@dataclass(slots=True)
class Waiting:
    """Signals that a job has not yet obeyed to the end."""

    job: str  #: id of the job
    patience: float  #: most seconds in which the job does not name a signal
    #: signals that are open, each with the time when the job last named it, or when it was sent
    open: dict[str, float]
    #: start id and time of the last beat, and when it was seen
    beat: tuple[str, int, float]

    def see(self, owner: Announcement | None, now: float) -> str:
        """Note what a look at the control topic shows. Return why nothing more is to be expected; "" to go on."""
        if owner is None or owner.facts.job != self.job:
            return "another job has taken over"
        facts = owner.facts
        if facts.ended:
            return "the job has ended"
        if (facts.start, facts.beat_ms) != self.beat[:2]:
            self.beat = (facts.start, facts.beat_ms, now)
        elif now - self.beat[2] > ALIVE_SECONDS:
            return f"no beat came from the job for {ALIVE_SECONDS:g} s"
        states: Mapping[str, str] = (facts.snapshots or {}).get("repairs", {})
        for name in list(self.open):
            if states.get(name) == "done":
                del self.open[name]
            elif name in states:
                self.open[name] = now
        if self.open and (paused := paused_by(facts)):
            return f"the job's snapshots were paused by the signal {paused}"
        if any(now - seen > self.patience for seen in self.open.values()):
            return f"the job has not begun with the signal within {self.patience:g} s"
        return ""


class SignalWay:
    """A way to the live job of `settings`. The constructor raises NoLiveJob if no job is proved to obey a signal.

    `server`: uuid of the server that was compared. `patience`: most seconds until the job begins with a signal.
    `allowance` says when the command ends: the constructor and `finish` then raise VerificationStopped.
    """

    def __init__(
        self, settings: Settings, server: str, patience: float, log_: AnnouncementLog, allowance: Allowance
    ) -> None:
        self._settings, self._patience, self._log = settings, max(patience, ALIVE_SECONDS), log_
        self._client = ClientSettings(settings.kafka.bootstrap_servers, settings.kafka.producer)
        self._admin = admin_client(self._client)
        self._allowance = allowance
        self.job: LiveJob = live_job(self._owner, ExpectedJob.of(settings, server), sleep=allowance.sleep)
        allowance.go_on()
        self._open: dict[str, float] = {}
        #: Topics of keys, by the id of the signal that names them.
        self._topics: dict[str, str] = {}

    def __str__(self) -> str:
        channel = {"kafka": "the signal topic", "source": "the signal table", "file": "the signal file"}
        place = f"{channel[self.job.channel]} {self.job.place}"
        return f"A signal by {place} asks {self.job.facts} to send again"

    def ask(self, repair: TableRepair) -> None:
        """Send the signal for a table. Raise IncsnapError if it cannot be sent."""
        name = f"{REPAIR_ID}{uuid4().hex[:12]}"
        absent = {"incsnap-absent": "delete"} if repair.deletes else {}
        keys = {"incsnap-keys": [exact_json.parsed(key) for key in repair.keys]}
        tables = [literal(repair.table)]
        data = send.snapshot_data(tables, chosen={**keys, **absent})
        if len(exact_json.written(data)) > _SIGNAL_BYTES:
            self._topics[name] = self._write(f"{self._settings.topic_prefix}.{name}", repair)
            data = send.snapshot_data(tables, chosen={"incsnap-keys-topic": self._topics[name], **absent})
        try:
            channel = send_signal(self._settings, name, "execute-snapshot", data, self.job.channel)
        except IncsnapError:
            self._forget(name)
            raise
        self._open[name] = time.monotonic()
        log.info("%s: sent execute-snapshot %s for %d keys by %s", repair.table, name, len(repair.keys), channel)

    def finish(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        """Wait until the job has sent the keys. Log a warning if the wait ends before that.

        Raise VerificationStopped within a second or so if the command shall end.
        """
        facts = self.job.facts
        waiting = Waiting(facts.job, self._patience, dict(self._open), (facts.start, facts.beat_ms, clock()))
        why = ""
        while waiting.open and not why:
            if self._allowance.stopping.wait(_PAUSE_SECONDS):
                why = "the command was stopped"
                break
            try:
                why = waiting.see(self._owner(), clock())
            except IncsnapError as error:
                why = error.message
        for name in self._open:
            if name not in waiting.open:
                self._forget(name)
        if why:
            names = ", ".join(waiting.open)
            obeys = (
                "still obeys the signal" if self._allowance.stopping.is_set() else "obeys the signal when it goes on"
            )
            log.warning("%s. The job %s: %s", why[:1].upper() + why[1:], obeys, names)
            for name, topic in self._topics.items():
                log.warning("Signal %s reads its keys from the topic %s: delete it afterwards", name, topic)
        self._open = {}
        self._allowance.go_on()

    def _owner(self) -> Announcement | None:
        """Return the owner of the prefix. Raise SinkError if Kafka fails."""
        return ask_kafka("looking for a live job", control_topic(self._settings.topic_prefix), self._log.owner)

    def _write(self, topic: str, repair: TableRepair) -> str:
        """Write the keys into a new topic, and return its name. Raise SinkError or ServerUnreachable."""
        replication = self._settings.topic_creation.default.replication_factor
        ensure_topics(self._admin, [topic], 1, replication, {"retention.ms": str(_KEPT_MS)})
        failed: list[object] = []
        producer = Producer({**self._client.for_admin(), "acks": "all", "enable.idempotence": "true"})
        left = 0
        try:
            for begin in range(0, len(repair.keys), _FLUSHED):
                for key in repair.keys[begin : begin + _FLUSHED]:
                    producer.produce(
                        topic, value=key, on_delivery=lambda error, _: failed.append(error) if error else None
                    )
                left += producer.flush(_FLUSH_SECONDS)
        except (KafkaException, BufferError) as error:
            failed.append(error)
        if failed or left:
            self._delete(topic)
            raise ServerUnreachable(f"Kafka did not take the keys for {topic}: {failed[:1] or 'time is over'}")
        return topic

    def _forget(self, name: str) -> None:
        """Delete the topic of keys of a signal, if it has one."""
        if name in self._topics:
            self._delete(self._topics.pop(name))

    def _delete(self, topic: str) -> None:
        try:
            answers = self._admin.delete_topics([topic], request_timeout=_FLUSH_SECONDS)
            answers[topic].result()
        except KafkaException as error:
            log.warning("The topic %s could not be deleted: %s", topic, error.args[0].str())
