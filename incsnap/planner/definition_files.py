"""The files of table definitions in a checkpoint: the job's own, and those of a job that it replaces.

A replaced job's checkpoint is read if this machine reaches it, because Kafka has no definitions. Each file of
definitions is named by a digest of its content. So another folder of the same name on this machine cannot be mistaken
for that checkpoint.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping

from incsnap.checkpoint.content_files import ContentFiles
from incsnap.checkpoint.files import Files
from incsnap.checkpoint.location import own_part
from incsnap.checkpoint.object_store import set_access
from incsnap.checkpoint.value_files import ValueFiles
from incsnap.checkpoint.windows import CheckpointDamaged
from incsnap.config.object_store import is_object_store
from incsnap.config.settings import Settings
from incsnap.ddl.batch_definitions import BatchDefinitions
from incsnap.errors import ConfigError, StoreFailed
from incsnap.kafka.announcements import StartFacts

log = logging.getLogger(__name__)
_FOLDER, _WHAT = "definitions", "definitions of tables"

DefinitionFiles = ValueFiles[BatchDefinitions]


def definition_files(files: Files) -> DefinitionFiles:
    """Return the definition files of the checkpoint."""
    return ValueFiles(files, _FOLDER, "what tables were when rows were written", BatchDefinitions)


def read_definitions(settings: Settings, job: StartFacts, names: Iterable[str]) -> dict[str, bytes]:
    """Return the content of the job's definition files that this machine can read, by name. Leave out the others."""
    location = job.checkpoint
    if not location:
        return {}
    if is_object_store(location):
        set_access(location, settings.store)
    kept = ContentFiles(Files(own_part(location)), _FOLDER, _WHAT)
    contents: dict[str, bytes] = {}
    for name in names:
        try:
            contents[name] = kept.read(name)
        except (OSError, StoreFailed, ConfigError, CheckpointDamaged) as error:
            log.info("Table definitions in %s cannot be read, so MySQL is asked for them: %s", location, error)
    return contents


def keep_definitions(files: Files, contents: Mapping[str, bytes]) -> None:
    """Write the definition files into another checkpoint, under the names that they had."""
    kept = ContentFiles(files, _FOLDER, _WHAT)
    for content in contents.values():
        kept.write(content)
