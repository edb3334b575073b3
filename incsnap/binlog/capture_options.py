"""The options for statements in the stream: which ones a job needs, and which ones end a batch."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

from incsnap.ddl.online_tables import OnlineTables
from incsnap.events import SchemaChange


@dataclass(frozen=True, slots=True)
class CaptureOptions:
    """The options for statements in the stream."""

    queries: bool = False  #: whether to keep the texts of statements, if the server logs them
    #: Whether the job needs a statement that changes tables. Other statements are skipped, so that they make no batch.
    concerns: Callable[[SchemaChange], bool] = lambda _: True
    #: Whether a batch must end after the statement.
    ends_batch: Callable[[SchemaChange], bool] = lambda _: False
    #: Whether the statement may change captured tables. If rows have no column names, a batch ends after each such
    #: statement.
    is_captured: Callable[[SchemaChange], bool] = lambda _: True
    #: Tables of tools for online schema changes where the stream begins. Their rows are left out. None: no such table
    #: is recognised.
    online: OnlineTables | None = None
    #: Whether tables of a database may belong to a tool that alters captured tables.
    watches: Callable[[str], bool] = lambda _: True
    #: Collation number -> character set, of the server. It is used to decode statements.
    charsets: Mapping[int, str] = field(default_factory=dict)


#: Options that keep every statement that changes tables, but no texts of statements that change rows.
CHANGES: Final = CaptureOptions()
