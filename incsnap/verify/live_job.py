"""The proof that a live job of incsnap reads a signal, from the announcements on the control topic of its prefix.

A signal that chooses rows may be sent to such a job only. Debezium and older releases ignore the fields that choose
rows, and read the whole table. A beat that is written while this module watches proves that the job lives. A young beat
proves nothing: clocks differ, and a job that was killed has left one.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from incsnap.checkpoint.own_starts import announced_location
from incsnap.config.settings import Settings
from incsnap.errors import IncsnapError
from incsnap.events import server_of
from incsnap.kafka.announcements import ALIVE_SECONDS, WATCH_SECONDS, Announcement, StartFacts
from incsnap.monitoring.signal_sender import channel_places
from incsnap.snapshot.delivered_place import delivered_place

#: The fields that the job must know. Any other reader of the signal ignores them.
NEEDED_FIELDS = ("incsnap-keys", "incsnap-keys-topic", "incsnap-absent")
#: Channels, the best one first: only the job of the prefix reads its messages on the signal topic. A row of the signal
#: table is read by each connector that captures the table.
_BY_PREFERENCE = ("kafka", "source", "file")
_PAUSE_SECONDS = 0.5

#: Returns the owner of the prefix as the control topic has it now.
Look = Callable[[], Announcement | None]


class NoLiveJob(IncsnapError):
    """An error: no live job is proved to read the signal, so nothing is sent."""


@dataclass(frozen=True, slots=True)
class ExpectedJob:
    """The job that a file of settings describes."""

    prefix: str  #: `topic.prefix`
    checkpoint: str  #: its checkpoint, as the job announces it
    channels: Mapping[str, str]  #: its signal channels, each with its place
    read_only: bool = False  #: whether nothing may be written to MySQL
    host: str = ""  #: name of this machine
    server: str = ""  #: uuid of the server that was compared

    @classmethod
    def of(cls, settings: Settings, server: str) -> ExpectedJob:
        """Return the job of `settings`."""
        return cls(
            settings.topic_prefix,
            announced_location(settings),
            channel_places(settings),
            settings.read_only,
            socket.gethostname(),
            server,
        )


@dataclass(frozen=True, slots=True)
class LiveJob:
    """A job that has written a beat meanwhile."""

    facts: StartFacts  #: facts in that beat
    channel: str  #: channel by which it reads signals

    @property
    def place(self) -> str:
        """Return the place of the channel: a table, a topic or a file."""
        return str((self.facts.signals or {})["channels"][self.channel])


def live_job(
    look: Look,
    expected: ExpectedJob,
    *,
    clock: Callable[[], float] = time.monotonic,
    wall: Callable[[], float] = time.time,
    sleep: Callable[[float], None] = time.sleep,
) -> LiveJob:
    """Return the live job of the prefix. Raise NoLiveJob if there is none, or if it would not obey a signal."""
    first = look()
    if first is None:
        raise NoLiveJob(
            f"No job of incsnap has announced itself with topic.prefix={expected.prefix}",
            "Debezium would ignore the keys and read whole tables. A job of incsnap with this topic.prefix can repair"
            " the topics (docs/migrate-from-debezium.md).",
        )
    # Two beats, and longer for a young beat: the next one may be late.
    seconds = min(ALIVE_SECONDS, max(WATCH_SECONDS, first.facts.beat_ms / 1000 + ALIVE_SECONDS - wall()))
    deadline, owner = clock() + seconds, first
    while not owner.facts.ended and not _is_newer(owner, first):
        if clock() >= deadline:
            raise NoLiveJob(
                f"No beat came from {owner.facts} within {seconds:.0f} s: it is dead",
                "Start the job again, and run this command again.",
            )
        sleep(_PAUSE_SECONDS)
        owner = look() or owner
    if owner.facts.ended:
        raise NoLiveJob(f"The job has ended: {owner.facts}", "Start the job, and run this command again.")
    return LiveJob(owner.facts, _channel(owner, expected))


def _is_newer(owner: Announcement, first: Announcement) -> bool:
    return (owner.term, owner.facts.start, owner.facts.beat_ms) != (first.term, first.facts.start, first.facts.beat_ms)


def _channel(owner: Announcement, expected: ExpectedJob) -> str:
    """Return the channel by which the job gets a signal. Raise NoLiveJob if it would not obey the signal."""
    facts = owner.facts
    if not owner.confirmed or owner.pending or not facts.job:
        raise NoLiveJob(f"This start has not begun yet: {facts}", "Run this command again in a minute.")
    known = (facts.signals or {}).get("fields", ())
    unknown = [name for name in NEEDED_FIELDS if name not in known]
    if unknown:
        release = f"release {facts.release}" if facts.release else "an older release"
        raise NoLiveJob(
            f"The job is of {release}, which does not announce that it knows {', '.join(unknown)}: {facts}",
            "Upgrade the job (docs/upgrade.md), and run this command again.",
        )
    if facts.checkpoint != expected.checkpoint:
        raise NoLiveJob(
            f"Another job than FILE's has topic.prefix={expected.prefix}: {facts}",
            f"FILE has the checkpoint {expected.checkpoint}. Run this command with the file of the job that runs.",
        )
    other = _other_server(facts, expected.server)
    if other:
        raise NoLiveJob(
            f"The job reads another server than the one that was compared: {other}, not {expected.server}",
            "Compare with the server that the job reads.",
        )
    if paused := paused_by(facts):
        raise NoLiveJob(
            f"The job's snapshots are paused by the signal {paused}",
            "Send resume-snapshot with `incsnap signal`, and run this command again.",
        )
    channels = (facts.signals or {}).get("channels", {})
    for name in _BY_PREFERENCE:
        is_own = name in channels and channels[name] == expected.channels.get(name)
        if is_own and not (name == "file" and facts.host != expected.host):
            return name
    raise NoLiveJob(
        f"The job reads signals from {_named(channels)}, and FILE names {_named(expected.channels)}",
        "Enable signal.enabled.channels=kafka or a signal.data.collection in FILE, and start the job again with it.",
    )


def paused_by(facts: StartFacts) -> str:
    """Return the id of the signal that has paused the job's snapshots; "" for none."""
    return str((facts.snapshots or {}).get("paused", ""))


def _other_server(facts: StartFacts, server: str) -> str:
    """Return the uuid of the server that the job reads if it is known and is not `server`; else ""."""
    try:
        uuid = "" if facts.place is None else server_of(delivered_place(facts.place).end.stream.server_uuid)
    except IncsnapError:
        return ""  # a newer release wrote the place
    return uuid if uuid and server and uuid != server else ""


def _named(channels: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} ({place})" for name, place in channels.items()) or "no channel"
