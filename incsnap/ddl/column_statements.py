"""The number of statements that have defined each column of a table since the table was last compared (`old_rows`).

Two definitions tell what has become of a value only if one statement lies between them. Of several statements they hide
what the first ones have done: `MODIFY c TEXT CHARACTER SET latin1` loses characters, and the way back restores none.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace

from incsnap.ddl.alterations import Alteration


@dataclass(frozen=True, slots=True)
class ColumnStatements:
    """The statements about the columns of one table."""

    columns: tuple[str, ...] = ()  #: columns in lower case, each as often as statements have defined it
    texts: int = 0  #: statements that have converted all texts (CONVERT TO CHARACTER SET)
    others: int = 0  #: statements that may have defined all columns: they brought another table in this one's place
    unread: int = 0  #: statements that were not understood: they may have defined any column

    def behind(self, alterations: Iterable[Alteration], new: Collection[str] | None) -> ColumnStatements:
        """Return the statements with one more, which makes `alterations`; several are those of a tool's copy.

        `new`: columns in lower case that earlier statements have added. Their DEFAULT is a value of old rows, so
        another DEFAULT defines such a column again. None: earlier statements may have added any column.
        """
        earlier, now, texts = list(self.columns), set[str](), self.texts
        for each in alterations:
            names, gone = each.new_names, {name.lower() for name in each.dropped}
            earlier = [names.get(name, name) for name in earlier if name not in gone]
            now = {names.get(name, name) for name in now if name not in gone}
            now |= {placed.column.name.lower() for placed in each.columns}
            with_default = [name.lower() for name in each.defaults]
            now |= {names.get(name, name) for name in with_default if new is None or name in new}
            new = None if new is None else {names.get(name, name) for name in new}
            texts += bool(each.converted)
        return replace(self, columns=tuple(sorted([*earlier, *now])), texts=texts)

    def number(self, column: str, *, is_new: bool, is_text: bool) -> int:
        """Return how many statements have defined a column of the table.

        `is_new`: whether the column was not there when the table was last compared.
        """
        own = self.columns.count(column.lower()) + self.unread
        return own if is_new else own + self.others + (self.texts if is_text else 0)


#: No statement has defined a column.
NO_STATEMENT = ColumnStatements()
