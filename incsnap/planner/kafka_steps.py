"""The steps of a start as a job does them: on Kafka and on the start's own checkpoint
(`incsnap.planner.start_steps`)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from incsnap.checkpoint.files import Files
from incsnap.checkpoint.location import own_part
from incsnap.checkpoint.own_starts import OwnCheckpoint, keep_start
from incsnap.config.settings import Settings
from incsnap.kafka.announcement_log import AnnouncementLog
from incsnap.kafka.announcements import Announcement, OwnStart, StartFacts
from incsnap.kafka.client_settings import ClientSettings
from incsnap.kafka.control import control_topic
from incsnap.kafka.topics import admin_client, partition_counts
from incsnap.planner.kafka_state import KafkaState, ask, fence_others
from incsnap.planner.one_start import PrefixState
from incsnap.planner.taking_over import HandOver, hand_over, take_over


class KafkaSteps:
    """The `StartPort` of a job. Its methods raise SinkError if Kafka fails."""

    def __init__(
        self,
        settings: Settings,
        checkpoint: OwnCheckpoint,
        log_: AnnouncementLog,
        announce: Callable[[Announcement], None],
        own: Callable[[], OwnStart],
    ) -> None:
        """Create the steps.

        `announce` writes the start's announcement. `own` returns the start as it was announced last.
        """
        self._settings = settings
        self._checkpoint = checkpoint
        self._log = log_
        self.announce = announce
        self._own = own
        self._root = own_part(settings.checkpoint_location)
        self._client = ClientSettings(settings.kafka.bootstrap_servers, settings.kafka.producer)
        self._topic = control_topic(settings.topic_prefix)

    def current_owner(self) -> Announcement | None:
        """Return the owner of the prefix, or None if no start has announced."""
        return ask("looking for another start", self._topic, self._log.owner)

    def owner_before(self) -> Announcement | None:
        """Return the newest record of the previous owner; None if that record was not read."""
        return self._log.before

    def earlier_buckets(self) -> int:
        """Return the number of the control topic's partitions: older releases made one partition for each bucket."""
        return partition_counts(admin_client(self._client), [self._topic])[self._topic]

    def state(self, buckets: int, *, fenced: bool) -> PrefixState:
        """Return the object that answers the questions of `judge`.

        With `fenced` it takes every other start for dead.
        """
        return KafkaState(self._client, self._settings.topic_prefix, buckets, None if fenced else self._log)

    def keep_start(self, start: str, before: Sequence[str]) -> None:
        """Write the id `start`, which is about to be announced, into this start's checkpoint.

        Later starts with this checkpoint know by the id that the announcement is their own. `before` are ids of earlier
        starts that the checkpoint keeps.
        """
        keep_start(Files(self._root), start, before)

    def fence(self, buckets: int) -> None:
        """Fence all other producers of the first `buckets` buckets."""
        fence_others(self._settings, buckets)

    def hand_over(self, jobs: Sequence[StartFacts], buckets: int) -> HandOver | None:
        """Return where the newest job has ended, or None if this checkpoint's own job just goes on.

        Raise CannotTakeOver or ServerUnreachable too.
        """
        return hand_over(self._settings, jobs, buckets, self._checkpoint)

    def take_over(self, place: HandOver) -> None:
        """Give the checkpoint to a new job, which begins at `place`."""
        take_over(self._settings, self._root, place, self._own())
