"""The signal table's inserted rows, as the binlog has them. Columns count by position: id, type, data."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from signals.records import SignalRecord


def records_of(rows: Iterable[Sequence[object]], positions: Iterable[str]) -> list[SignalRecord]:
    """Return one record for each inserted row. `positions` identify the rows (GTID and row number)."""
    return [_record(row, position) for row, position in zip(rows, positions, strict=True)]


def _record(row: Sequence[object], position: str) -> SignalRecord:
    if len(row) != 3:
        problem = f"the signal table has {len(row)} columns; it must have three: id, type, data"
        return SignalRecord(None, None, channel="source", position=position, problem=problem)
    name, kind, data = row
    if not all(value is None or isinstance(value, str) for value in row):
        problem = "a column of the signal table holds bytes or numbers, not text"
        return SignalRecord(None, None, channel="source", position=position, problem=problem)
    return SignalRecord(name, kind, data, "source", position)  # type: ignore[arg-type]
