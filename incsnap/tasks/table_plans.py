"""The plan of a table: everything that is known before its first row, to encode its rows together with other tables'.

A plan is made once for each definition of a table, and the worker keeps it. Example: the tables `shop.pens` and
`shop.inks` both have the columns `id INT PRIMARY KEY` and `name VARCHAR(20)`. Their plans have:

    name      "shop.pens"                   "shop.inks"
    topic     "p.shop.pens"                 "p.shop.inks"
    needed    (0, int), (1, varchar)        (0, int), (1, varchar)    the same two ValueKind objects
    placed    b'{"id":%b}'                  b'{"id":%b}'              the key: PlacedTexts of column 0
              b'{"id":%b,"name":%b}'        b'{"id":%b,"name":%b}'    the row: PlacedTexts of columns 0 and 1

A slice inserts (7, 'blue') and (8, NULL) into `shop.pens`, and (1, 'black') into `shop.inks`:

    kind int        decodes [7, 8, 1] at once, and encodes [b'7', b'8', b'1']
    kind varchar    decodes ['blue', None, 'black'] at once, and encodes [b'"blue"', b'null', b'"black"']
    shop.pens       rows {"id":7,"name":"blue"} and {"id":8,"name":null}, keys {"id":7} and {"id":8}
    shop.inks       row {"id":1,"name":"black"}, key {"id":1}
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np

from incsnap.binlog.protocol.row_images import types_and_fields
from incsnap.binlog.protocol.table_map import TableMap
from incsnap.columns.images import Field, ImageLayout, ValueSpan, layout_of
from incsnap.columns.packets import Packets, Spans
from incsnap.config.settings import Settings
from incsnap.envelope.row_template import RowTemplate, ValueTexts
from incsnap.envelope.table_templates import TableTemplates, table_templates
from incsnap.tables import Column, Defaults, TableId
from incsnap.tasks.formats import format_key, format_of
from incsnap.types.column_type import ColumnType, describe

_NO_TABLE = TableId("", "")


@dataclass(frozen=True, slots=True, eq=False)
class ValueKind:
    """Columns of any tables whose values are decoded alike. There is one object for each kind."""

    type: ColumnType  #: the MySQL type
    field: Field  #: the size of a value in a row image

    def decode(self, packets: Packets, places: Sequence[ValueSpan]) -> Any:
        """Return the values at `places` as one canonical column. Raise what `ColumnType.decode` raises."""
        start, length = np.array(places, np.int64).reshape(-1, 2).T
        present = length >= 0
        valid = None if present.all() else present
        lengths = np.maximum(length, 0) if self.field.prefixed else self.field.size
        return self.type.decode(Spans(packets, np.ascontiguousarray(start), lengths, valid))


@dataclass(frozen=True, slots=True, eq=False)
class TextKind:
    """Values of one kind that are encoded alike. There is one object for each kind."""

    values: ValueKind  #: how the values are decoded
    texts: ValueTexts  #: the encoder


@dataclass(frozen=True, slots=True, eq=False)
class PlacedTexts:
    """A template of a row, and the columns that fill it."""

    template: RowTemplate  #: the template
    texts: tuple[tuple[int, TextKind], ...]  #: (index of the column, encoder), one for each gap of the template


@dataclass(frozen=True, slots=True, eq=False)
class TablePlan:
    """The plan of one table."""

    templates: TableTemplates  #: topic, templates and encoders of the table's records
    name: str  #: the table, as `str(TableId)`
    layout: ImageLayout  #: where values lie in a row image
    needed: tuple[tuple[int, ValueKind], ...]  #: (index, kind) of each column that is decoded
    #: of key, row, identity and shown row, as in `TableTemplates`; None for a text that the table does not have
    placed: tuple[PlacedTexts | None, ...]
    texts: tuple[TextKind, ...]  #: all kinds of texts of the four templates, each once
    literal_bytes: int  #: bytes of the templates: what an image becomes besides its values


class TablePlans:
    """The plans of one job's tables, by their table maps."""

    #: Most columns of all plans, at 0.3 KB each. Above it all plans are forgotten and made again when needed.
    _MOST_COLUMNS = 200_000

    def __init__(self) -> None:
        self._columns = 0
        #: By `id()` of the table map. The map is kept too, so no other object can get its id.
        self._known: dict[int, tuple[TableMap, Defaults, TablePlan | None]] = {}

    def of(self, settings: Settings, table_map: TableMap, defaults: Defaults) -> TablePlan | None:
        """Return the table's plan; None if the table's records have to be encoded alone.

        Raise what `format_of` raises.
        """
        known = self._known.get(id(table_map))
        if known is not None and known[0] is table_map and known[1] == defaults:
            return known[2]
        if self._columns >= self._MOST_COLUMNS:
            self._known.clear()
            self._columns = 0
        plan = _plan(settings, table_map, defaults)
        self._columns += len(table_map.shape.columns) if known is None else 0
        self._known[id(table_map)] = table_map, defaults, plan
        return plan


def plans_of(settings: Settings) -> TablePlans:
    """Return the plans for the settings. The worker keeps them between batches."""
    return _plans_of(format_key(settings))


@lru_cache(maxsize=2)
def _plans_of(key: Hashable) -> TablePlans:
    return TablePlans()


def _plan(settings: Settings, table_map: TableMap, defaults: Defaults) -> TablePlan | None:
    shape = table_map.shape.with_defaults(defaults) if defaults else table_map.shape
    templates = table_templates(format_of(settings, shape))
    if templates is None:
        return None
    _, fields = types_and_fields(table_map)
    kinds = [_value_kind(replace(column, name=""), field) for column, field in zip(shape.columns, fields, strict=True)]
    needed = tuple((index, kinds[index]) for index in sorted(templates.format.view.needed))
    placed = tuple(
        None if template is None else _placed(template, kinds)
        for template in (templates.key, templates.row, templates.identity, templates.shown)
    )
    whole = [each for each in placed if each is not None]
    return TablePlan(
        templates,
        str(shape.id),
        layout_of(fields),
        needed,
        placed,
        texts=tuple(dict.fromkeys(kind for each in whole for _, kind in each.texts)),
        literal_bytes=sum(len(each.template.literals) for each in whole),
    )


def _placed(template: RowTemplate, kinds: Sequence[ValueKind]) -> PlacedTexts:
    return PlacedTexts(template, tuple((index, _text_kind(kinds[index], texts)) for index, texts in template.texts))


@lru_cache(maxsize=4096)
def _value_kind(column: Column, field: Field) -> ValueKind:
    return ValueKind(describe(column, _NO_TABLE), field)


_text_kind = lru_cache(maxsize=4096)(TextKind)
