"""Whoever still writes for a job is fenced, bucket by bucket: what it has not committed to Kafka never is."""

from __future__ import annotations

import logging

from incsnap.checkpoint.files import Files
from incsnap.checkpoint.first_offset import kept_first_offset
from incsnap.checkpoint.status import newest_offset
from incsnap.config.settings import Settings
from incsnap.kafka.client_settings import ClientSettings
from incsnap.kafka.transaction import BucketWriter
from incsnap.snapshot.offset import Offset

log = logging.getLogger(__name__)
#: Behind all batches there will be: a transaction that is begun for it, and aborted.
_BEHIND_ALL = 1 << 62


def shut_out(settings: Settings, job: Offset) -> None:
    """``job``: an offset of it, which has its id and its buckets. Raises ``SinkError``."""
    client = ClientSettings(settings.kafka.bootstrap_servers, settings.kafka.producer)
    writer = BucketWriter(client, settings.topic_prefix, job.job_id)
    for bucket in range(job.layout.buckets):
        transaction = writer.open(bucket, _BEHIND_ALL, "")
        if transaction is not None:
            transaction.abort()


def shut_out_the_one_before(settings: Settings, root: str) -> None:
    """At the start of a job whose checkpoint was taken from a holder that did not let go of it: that one may only have
    been frozen, and would go on where it was. ``root``: of incsnap's part of the checkpoint."""
    job = newest_offset(settings.checkpoint_location.rstrip("/")) or kept_first_offset(Files(root))
    if job is not None:
        shut_out(settings, job)
        log.info("The job that had the checkpoint before is shut out of Kafka")
