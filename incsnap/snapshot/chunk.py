"""What a chunk is: a range of keys of one table, and what else the reader must know to select it.

A chunk is ``lower < key <= upper`` in the order of the table's key, so that chunks which touch cover every row once.
It holds no SQL (``chunk_query`` writes that), no rows and no watermarks (``window`` has those).
"""

from __future__ import annotations

from dataclasses import dataclass

from incsnap.snapshot.keys import Key
from incsnap.tables import Column, TableId, TableShape


@dataclass(frozen=True, slots=True)
class Chunk:
    """Rows of ``table`` with ``lower < key <= upper`` that also meet ``condition``.

    ``columns`` names the ordering columns: the primary key, or the surrogate key of the signal.
    ``index`` begins with them in this order and is forced; "" leaves the choice to the server.
    ``lower`` is None for the first chunk. ``condition`` is an SQL fragment of the signal, "" for none.
    """

    table: TableId
    columns: tuple[str, ...]
    lower: Key | None
    upper: Key
    condition: str = ""
    index: str = "PRIMARY"


def ordering_columns(shape: TableShape, names: tuple[str, ...]) -> tuple[Column, ...]:
    """The columns of ``shape`` called ``names``; ``KeyError`` when one is gone (the shape has changed)."""
    by_name = {column.name: column for column in shape.columns}
    return tuple(by_name[name] for name in names)
