"""The tables of tools in databases that a start watches and that the start before did not watch.

Statements of these databases were not followed. So a run of gh-ost that is under way there is known to the server
alone. The answer lies beside the checkpoint until the next one:

    online-found.json    the tables of tools that a start with wider lists has found, and the start's batch and lists

The batch may be repeated by another process. Its rows are then left out by the same answer, although the run may have
ended.
"""

from __future__ import annotations

from typing import Any

from pymysql.connections import Connection

from incsnap.checkpoint.files import Files
from incsnap.config.settings import Settings
from incsnap.ddl.online_tables import OnlineTables
from incsnap.mysql.catalog import tables
from incsnap.mysql.online_tables import online_tables
from incsnap.planner.new_tables import FilterFiles, filter_of
from incsnap.snapshot.dataclass_json import from_json, to_json
from incsnap.snapshot.offset import Offset

_NAME = "online-found.json"


class NewlyWatched:
    """The tables of tools in newly watched databases, for one planner. `files` is incsnap's part of the checkpoint."""

    def __init__(self, settings: Settings, files: Files) -> None:
        self._watched = settings.tables
        self._files = files
        self._before = ""  #: file with the lists of the start before
        self._found = OnlineTables()

    def ask(self, start: Offset, connection: Connection[Any]) -> None:
        """Ask the server for the tables, if the lists behind `start` were others.

        Call this before the stream begins.
        """
        self._before = filter_of(start)
        former = FilterFiles(self._files).read(self._before) if self._before else None
        if former is None or former == self._watched:
            return
        asked = {"job": start.job_id, "batch": start.batch, "lists": self._watched.model_dump(mode="json")}
        written = self._written()
        if {key: written.get(key) for key in asked} == asked:
            self._found = from_json(OnlineTables, written["tables"])
            return
        existing = tables(connection, self._watched.of_whole_databases())
        new = [table for table in existing if not former.may_include_database(table.database)]
        self._found = online_tables(connection, new)
        self._files.write_json(_NAME, {**asked, "tables": to_json(OnlineTables, self._found)}, durable=True)

    def at(self, start: Offset) -> OnlineTables:
        """Return the tables that are not in the offset `start` yet."""
        return self._found if filter_of(start) == self._before else OnlineTables()

    def _written(self) -> dict[str, Any]:
        """Return the content of the file; {} if the file is missing or torn."""
        try:
            return self._files.read_json(_NAME) or {}
        except ValueError:
            return {}
