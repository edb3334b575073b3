"""Templates that put rows together from encoded values.

Encoding a column of three values costs as much as encoding one of a thousand. If many tables have a few rows each, the
columns of one kind are therefore encoded together for all tables (`value_texts`). A `RowTemplate` then puts each row
together.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from incsnap.columns.arrow import Array


class ValueTexts(Protocol):
    """An encoder for the values of columns of one kind: a call takes values and returns the bytes of each.

    Equal objects encode equal values to equal bytes. So the values of columns with equal encoders are joined and
    encoded in one call, whatever their tables.
    """

    def __hash__(self) -> int: ...

    def __call__(self, values: Array) -> list[bytes]:
        """Return the bytes of each value of a canonical column, as they stand in a row.

        Raise IncsnapError if a value cannot be expressed. The error does not name a table, and nothing is logged.
        """


@dataclass(frozen=True, slots=True)
class RowTemplate:
    """A template of a row, and the columns whose encoded values fill the template."""

    literals: bytes  #: the row, with `%b` for each value
    texts: tuple[tuple[int, ValueTexts], ...]  #: (index of the column, encoder of its values), one per `%b`

    @classmethod
    def of(cls, literals: Iterable[bytes | None], texts: Iterable[tuple[int, ValueTexts]]) -> RowTemplate:
        """Return a template made of constant bytes and places for values.

        `literals` are the parts of a row in their order: constant bytes, or None for a place. `texts` has for each
        place the index of the column whose value goes there, and the encoder of that value.
        """
        return cls(b"".join(b"%b" if each is None else each.replace(b"%", b"%%") for each in literals), tuple(texts))

    def rows(self, columns: Sequence[Sequence[bytes]], count: int) -> list[bytes]:
        """Return `count` rows. `columns`: for each of `texts` the encoded value of every row."""
        template = self.literals
        return [template % row for row in zip(*columns, strict=True)] if columns else [template % ()] * count
