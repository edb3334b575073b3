"""The refusal of a first start whose take-over is out of date: the connector has sent records since, or settings have
changed."""

from __future__ import annotations

from itertools import zip_longest

from incsnap.checkpoint.files import Files
from incsnap.checkpoint.first_offset import kept_first_offset
from incsnap.checkpoint.taken_over import taken_over
from incsnap.config.settings import Settings
from incsnap.errors import ConfigError
from incsnap.kafka.client_settings import ClientSettings
from incsnap.kafka.topic_ends import ends_by_topic, has_records
from incsnap.planner.choices import choices_digest


def refuse_late_start(settings: Settings, files: Files) -> None:
    """Raise ConfigError if topics of a connector have more records than the take-over has seen.

    The job would send these changes again, perhaps beside the connector. Raise ConfigError too if the job begins inside
    a transaction and settings have changed: the transaction has other events then. Call this only before the job's
    first batch. `files` is incsnap's part of the checkpoint. Raise ServerUnreachable if Kafka does not answer.
    """
    taken, first = taken_over(files), kept_first_offset(files)
    # A job that has begun again at another place has no seam.
    if taken is None or (first is not None and not first.seam):
        return
    if taken.choices and taken.choices != choices_digest(settings):
        raise ConfigError(
            "settings for tables, columns, keys or transforms have changed since `incsnap takeover`, and the job"
            " begins inside a compressed transaction, whose rows were counted with the former settings",
            "Change them back until the job has sent its first batch, or take over again with a new"
            " checkpoint.location.",
        )
    if not taken.ends:
        return
    client = ClientSettings(settings.kafka.bootstrap_servers, settings.kafka.producer)
    for topic, ends in ends_by_topic(client, taken.ends).items():
        for number, (before, end) in enumerate(zip_longest(taken.ends[topic], ends, fillvalue=0)):
            # An aborted transaction moves the end too.
            if end > before and has_records(client, topic, number, before):
                raise ConfigError(
                    f"{topic} has records that were written after `incsnap takeover`: the connector has gone on",
                    "Stop the connector, and run `incsnap takeover` again.",
                )
