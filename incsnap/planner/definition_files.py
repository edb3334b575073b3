"""The files of table definitions in a checkpoint."""

from __future__ import annotations

from incsnap.checkpoint.files import Files
from incsnap.checkpoint.value_files import ValueFiles
from incsnap.ddl.batch_definitions import BatchDefinitions

DefinitionFiles = ValueFiles[BatchDefinitions]


def definition_files(files: Files) -> DefinitionFiles:
    """Return the definition files of the checkpoint."""
    return ValueFiles(files, "definitions", "what tables were when rows were written", BatchDefinitions)
