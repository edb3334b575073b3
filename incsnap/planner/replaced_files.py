"""The files of a replaced job's checkpoint that its successor needs, and that are not in Kafka.

That checkpoint is read if this machine reaches it. Each file is named by a digest of its content. So another folder of
the same name on this machine cannot be mistaken for that checkpoint.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping

from incsnap.checkpoint.content_files import ContentFiles
from incsnap.checkpoint.files import Files
from incsnap.checkpoint.location import own_part
from incsnap.checkpoint.object_store import set_access
from incsnap.checkpoint.windows import CheckpointDamaged
from incsnap.config.object_store import is_object_store
from incsnap.config.settings import Settings
from incsnap.errors import ConfigError, StoreFailed
from incsnap.kafka.announcements import StartFacts

log = logging.getLogger(__name__)

#: Folder -> name -> content.
FilesByFolder = Mapping[str, Mapping[str, bytes]]
#: What the files of a folder hold, and what follows if they cannot be read.
_FOLDERS = {
    "definitions": ("table definitions", "MySQL is asked for them"),
    "online": ("the tables of tools for online schema changes", "those of a run under way are captured"),
    "filters": ("the lists that chose the captured tables", "snapshot.new.tables finds no new tables"),
    "columns": ("definitions of captured tables", "incsnap.online.ddl.reread begins with those of MySQL"),
}


def read_replaced(settings: Settings, job: StartFacts, names: Mapping[str, Iterable[str]]) -> FilesByFolder:
    """Return the files that this machine can read, by folder and name. `names` are the names of each folder."""
    location = job.checkpoint
    if not location:
        return {}
    if is_object_store(location):
        set_access(location, settings.store_of(location))
    files = Files(own_part(location))
    contents: dict[str, dict[str, bytes]] = {}
    for folder, needed in names.items():
        what, otherwise = _FOLDERS[folder]
        kept = ContentFiles(files, folder, what)
        for name in needed:
            try:
                contents.setdefault(folder, {})[name] = kept.read(name)
            except (OSError, StoreFailed, ConfigError, CheckpointDamaged) as error:
                log.info("%s: %s in the checkpoint of the replaced job cannot be read (%s)", otherwise, what, error)
    return contents


def keep_replaced(files: Files, contents: FilesByFolder) -> None:
    """Write the files into another checkpoint, under the names that they had."""
    for folder, by_name in contents.items():
        kept = ContentFiles(files, folder, _FOLDERS[folder][0])
        for content in by_name.values():
            kept.write(content)
