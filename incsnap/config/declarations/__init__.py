"""The declarations of all settings that incsnap obeys."""

from __future__ import annotations

from collections.abc import Mapping

from incsnap.config.declarations import capture, job, records, snapshots
from incsnap.config.declarations.setting import Setting

#: Title of a group -> its settings, in the order of the sample and of the reference page.
GROUPS: Mapping[str, tuple[Setting, ...]] = {
    "To be decided for each job": capture.DECIDED,
    "The MySQL server": capture.SERVER,
    "What is captured": capture.CAPTURE,
    "Where a job begins, and snapshots": snapshots.SNAPSHOTS,
    "Signals, notifications and heartbeats": snapshots.SIGNALS,
    "Types and formats of records": records.RECORDS,
    "Columns, keys and names": records.COLUMN_RULES,
    "Transforms": records.TRANSFORMS,
    "Topics and Kafka": job.KAFKA,
    "Errors": job.ERRORS,
    "Batches, restarts and Spark": job.RUNNING,
    "Watching the job": job.WATCHING,
}
_ALL = [setting for group in GROUPS.values() for setting in group]
#: Name -> setting.
SETTINGS: Mapping[str, Setting] = {setting.name: setting for setting in _ALL if not setting.name.endswith("*")}
#: Beginnings of names; all names below are obeyed.
PREFIXES = tuple(setting.name[:-1] for setting in _ALL if setting.name.endswith("*"))
