"""What is wanted of the stream besides rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

from incsnap.events import SchemaChange


@dataclass(frozen=True, slots=True)
class CaptureOptions:
    """What a job wants of the stream besides rows."""

    queries: bool = False  #: whether to keep the texts of statements, where the server logs them
    #: Which changes of tables are of interest. Others are passed over, so that they make no batch.
    concerns: Callable[[SchemaChange], bool] = lambda _: True
    #: The statements behind which every batch ends.
    ends_batch: Callable[[SchemaChange], bool] = lambda _: False
    #: The character set of each collation of the server, by the collation's number: statements are read by it.
    charsets: Mapping[int, str] = field(default_factory=dict)


CHANGES: Final = CaptureOptions()
"""All changes of tables, and nothing else."""
