"""What tells a table's rows apart, as bytes: the columns of ``TableView.identity`` as JSON in which no two values of a
column look alike, whatever the modes are.

A zero date is null, though the column is NOT NULL: Kafka's records write the epoch for it, which is a date of its own.
Dates that are zero in part (2024-00-00), and days that no month has, are null too: nothing tells these apart.
"""

from __future__ import annotations

from dataclasses import replace

from incsnap.envelope.table_view import TableView, ViewField
from incsnap.types.modes import Modes

#: The year 1 must not look like 2001.
EXACT = Modes(time_adjuster="false")


def identifying(view: TableView) -> list[ViewField]:
    """The columns, to be written under ``EXACT``."""
    columns = [(index, replace(view.shape.columns[index], nullable=True)) for index in view.identity]
    return [ViewField(index, column.name, column, view.shape.id) for index, column in columns]
