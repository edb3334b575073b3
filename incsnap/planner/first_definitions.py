"""The definitions of captured tables at the place where a new job begins. The tail and the planner do not exist yet."""

from __future__ import annotations

import logging
from functools import partial
from typing import Any

from pymysql.connections import Connection

from incsnap.binlog.statement_search import statements_behind
from incsnap.config.settings import Settings
from incsnap.errors import IncsnapError
from incsnap.events import StreamPosition
from incsnap.mysql import watermarks
from incsnap.mysql.catalog import charsets
from incsnap.mysql.row_definitions import leaves_names_out
from incsnap.mysql.session import dial
from incsnap.planner.definition_files import DefinitionFiles
from incsnap.planner.definition_history import KnownTables
from incsnap.planner.definitions import WAIT_SECONDS, NotCertain
from incsnap.planner.known_definitions import stored_form
from incsnap.planner.schema_changes import capture_options
from incsnap.planner.server_definitions import ask_server

log = logging.getLogger(__name__)


def first_definitions(
    settings: Settings, files: DefinitionFiles, connection: Connection[Any], first: StreamPosition
) -> str:
    """Return the name of the file with the definitions at `first`; "" if rows name their columns or if no answer is
    certain.

    Seconds pass between a job's first offset and its first batch, while Spark starts. A row may be written in this
    time, and then a statement about its table. Nobody could tell the row's definition later. So the server is asked at
    once. If the answer is not certain, the first batch asks again.
    """
    if not leaves_names_out(connection):
        return ""
    at = StreamPosition(first.delivered, "", 0, server_uuid=watermarks.server_uuid(connection))
    options = capture_options(settings, tuple(sorted(charsets(connection).items())), follows=True)
    search = partial(statements_behind, partial(dial, settings.mysql), settings.mysql.server_id, options)
    try:
        answer = ask_server(
            (),
            KnownTables(),
            settings.tables,
            at,
            connection,
            WAIT_SECONDS,
            lambda position, until, _: search(position, until),
            same_server=True,
            everything=True,
        )
    except (NotCertain, IncsnapError) as late:
        log.info("The first batch asks MySQL for the definitions of tables, because they are not certain yet: %s", late)
        return ""
    return files.keep(stored_form(answer.updates(KnownTables(), everything=True), (), settings.tables))
