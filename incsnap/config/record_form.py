"""A short text that differs where settings give records, or what de-duplication tells rows apart by, another form.

It stands in the offset. Windows in flight hold records and identities of the form they were read in; under another one
nothing of them may be sent, and no event would be found among them.
"""

from __future__ import annotations

import hashlib
import json

from incsnap.config.settings import Settings

#: To be raised when the same settings give other keys, values or identities than in the release before.
RECORD_FORM = 4

#: What shapes no row's record. All else does, also what a later release adds: a needless difference costs the windows
#: in flight, which are read again, a missed one sends stale rows. ``tables``: a table that is not captured any more has
#: no events that could overtake its rows. The number of partitions is in the layout.
_ELSEWHERE = {
    *("mysql", "kafka", "tables", "signals", "read_only", "snapshot", "topic_creation", "failures", "notifications"),
    *(
        "heartbeat",
        "start",
        "monitoring",
        "retries",
        "executed_wait_seconds",
        "checkpoint_location",
        "store",
        "batch_interval_ms",
        "spark",
        "max_batch_rows",
        "max_queue_bytes",
    ),
    *("include_query", "include_schema_changes", "transaction_topic", "tombstones_on_delete"),
    # Told apart: a job that sends to Kafka has none, and no other form for it.
    "frame",
}


def record_form(settings: Settings) -> str:
    """The same in every process and for every order of the file. Of secrets, only salts are in it: another password is
    no other form."""
    shown = settings.model_dump(mode="json", exclude={*_ELSEWHERE, "skipped_operations"})
    salts = [rule.transform.salt for rule in settings.columns.transforms]
    # Sorted: sets of strings have another order in each process. Skipped operations overtake no row.
    content: list[object] = [RECORD_FORM, shown, salts, sorted(settings.skipped_operations)]
    if settings.frame is not None:
        content.append(settings.frame.columns)
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:16]
