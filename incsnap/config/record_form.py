"""A digest of all settings that shape records or the identities of rows.

The digest is stored in the offset. Windows in flight hold records and identities of the digest under which they were
read. Under another digest they must not be sent, because events could no longer be matched to their rows.
"""

from __future__ import annotations

import hashlib
import json

from incsnap.config.names import words
from incsnap.config.settings import Settings

#: Raise this number when the same settings produce other keys, values or identities than in the previous release.
RECORD_FORM = 4

#: Settings that shape no row's record. All other settings count, also new ones of later releases. A needless difference
#: costs reading the windows in flight again. A missed difference sends stale rows.
#:
#: `tables` is here because a table that is no longer captured has no events that could overtake its rows.
#: `topic_creation` is here because the offset stores the number of partitions itself (`snapshot.offset.TopicLayout`).
#: `record_form` handles `frame` and `skipped_operations`: jobs that send to Kafka have no frame, and their digest must
#: not change.
_WITHOUT_INFLUENCE = words(
    """
    mysql kafka tables signals read_only snapshot topic_creation failures notifications heartbeat start monitoring
    verify retries checkpoint_location store batch_interval_ms spark spark_launch_mode max_batch_rows max_queue_bytes
    run_id include_query include_schema_changes only_captured_ddl transaction_topic tombstones_on_delete frame
    skipped_operations online_ddl_tables
    """
)


def record_form(settings: Settings) -> str:
    """Return the digest as 16 hexadecimal digits.

    The digest is equal in every process and for every order of settings in the file. Of the secrets only salts count:
    another password changes no record.
    """
    shown = settings.model_dump(mode="json", exclude=set(_WITHOUT_INFLUENCE))
    for side in ("key", "value"):
        # Only where it says something: the digest of settings without it is that of earlier releases.
        for option in ("closed", "optional", "wrapped", "scrubbed", "frame", "extended"):
            if not shown["formats"][side][option]:
                del shown["formats"][side][option]
    if shown["modes"]["debezium"] == "3.6":
        del shown["modes"]["debezium"]
    salts = [rule.transform.salt for rule in settings.columns.transforms]
    # Sorted, because sets of strings have a different order in each process.
    content: list[object] = [RECORD_FORM, shown, salts, sorted(settings.skipped_operations)]
    if settings.run_id:
        # Whether there are extended headers shapes records. The id in them is another one at each start.
        content.append("extended headers")
    if settings.frame is not None:
        content.append(settings.frame.columns)
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:16]
