"""Settings of Debezium's Filter and ContentBasedRouter, with a condition for each row.

Rows of `changes.sql` are told apart by their column `id`, so that each has a condition of its own. Deletions stay.
"""

from __future__ import annotations

from collections.abc import Mapping


def filters(language: str, conditions: Mapping[str, str], **options: str) -> dict[str, str]:
    """Return the settings of one Filter for each table. `options`: of all filters, with `__` for each dot."""
    settings = {"transforms": ",".join(conditions), "decimal.handling.mode": "double"}
    for table, condition in conditions.items():
        start = f"transforms.{table}."
        settings[f"{start}type"] = "io.debezium.transforms.Filter"
        settings[f"{start}language"] = f"jsr223.{language}"
        settings[f"{start}topic.regex"] = rf".*\.{table}"
        settings[f"{start}condition"] = condition
        settings |= {f"{start}{name.replace('__', '.')}": value for name, value in options.items()}
    return settings


def router(language: str, expression: str) -> dict[str, str]:
    """Return the settings of a ContentBasedRouter of customers."""
    return {
        "transforms": "route",
        "transforms.route.type": "io.debezium.transforms.ContentBasedRouter",
        "transforms.route.language": f"jsr223.{language}",
        "transforms.route.topic.regex": r".*\.customers",
        "transforms.route.topic.expression": expression,
    }


def _rows(*conditions: tuple[int, str]) -> str:
    """Return a condition of pairs: an id, and the condition of the row with that id. `@` stands for the row's image."""
    each = [f"value.after.id == {row} && ({condition.replace('@', 'value.after.')})" for row, condition in conditions]
    return " || ".join(["value.op == 'd'", *each])


#: Conditions that Groovy and JavaScript read alike. Each table has one that holds for some of its rows.
BOTH = {
    "integers": _rows(
        (1, "@t == null"),
        (2, "@t == 0.0"),
        (3, "@tu == 0 && @b < -9007199254740991"),
        (4, "@bu < 0 || @t == 1"),
        (5, "@one_u == 128 && @flag != 0 || @flag == null"),
    ),
    "floats": _rows(
        (1, "@f == null"),
        (2, "@f == 0"),
        (3, "@f72 == -99999.99"),
        (4, "@d123 >= 999999999.999"),
        (5, "@f == 0.1"),
        (6, "@d123 == 0.001 || @f72 == 1.0"),
        (7, "@f72 == 0 && @f <= 0"),
        (8, "@f == 16777217 || @f20 == 16777217"),
        (9, "@f30 > 9007199254740991"),
        (10, "@f > 10000000000 && @r == 0.3"),
        (11, "@f30 == 3.141592653589793"),
    ),
    "texts": _rows(
        (1, "@v == null && @n == ''"),
        (2, "@v == ''"),
        (3, "@c == 'abc' && @v == 'abc  '"),
        (4, "@v < '～'"),
        (5, "@c < ' a'"),
    ),
    "choices": _rows((1, "@e == null"), (2, "@e == 'a'"), (3, "@s == 'a,b,c'"), (4, "@en != 'one'"), (6, "@e == ''")),
    "dates": _rows((1, "@d == null"), (2, "@d < -300000"), (3, "@y == 2155"), (4, "@d == -1"), (5, "@y >= 1970")),
    "timestamps": _rows((2, "@t == '1970-01-01T00:00:01Z'"), (3, "@t6 > '2038'"), (4, "@t3 < '2024-02-29T12:34:57'")),
    "datetimes": _rows((2, "@t == 0"), (3, "@t6 < 0"), (6, "@t3 == 1704067200500")),
    "documents": _rows((1, "@j == null"), (2, "@j == 'null'"), (4, "@j == 'true' && @jn == 'false'"), (13, "@j > '{'")),
    "decimals": _rows((2, "@d10 == 0"), (3, "@d5 == -999.99"), (4, "@d65 > 1"), (6, "@d5 == -0.1"), (7, "@d5 == 2.56")),
    "bits": _rows((1, "@b1 == null"), (2, "@b1 == false"), (3, "@b1 == true"), (4, "@b1 != false"), (5, "@b1 == true")),
    "defaults": _rows((1, "@su == 65535 && @t == -7"), (2, "@su == null || @f == 1.25 && @c == 'ab' && @vn == null")),
    "composite": "value.before == null || value.after == null || value.op == 'u' && value.before.a != 1",
}

GROOVY = {
    **BOTH,
    "customers": "value.after?.email in ['x-dup', '', 'e'] || [101, 200].contains(value.after?.id)",
    "orders": "value.after == null || value.after.id == 5 || value.after.get('note') in ['joined', '']",
    "unsigned_key": "value.after.k in [9223372036854775807] || [0, 1].contains(value.after.v)",
    "enum_key": "!(value.op in ['c', 'u']) || ['x,y'].contains(value.after.s)",
}

JAVASCRIPT = {
    **BOTH,
    "customers": "value.after?.email === '' || [101, 200].includes(value.after?.id)",
    "orders": "value.after === null || [2, 5].includes(value.after.id) || value.after.note == 'joined'",
    "defaults": "[-7].includes(value.after.t) && [1.25].includes(value.after.f)",
    "unsigned_key": "value.after.k < 0 || [0].includes(value.after.k)",
    "enum_key": "!['c', 'u'].includes(value.op) || ['x,y'].includes(value.after.s)",
}

#: Conditions that hold for the NULLs of row 1, and for no other row. In Groovy null is less than any value.
NULLS_IN_GROOVY = {
    "integers": _rows((1, "@t < -999 && @t <= -999 && !(@t > -999) && !(@t >= -999) && -999 > @t && !(-999 <= @t)")),
    "texts": _rows((1, "@v < 'a' && @v <= '' && !(@v > '') && !(@v >= 'a') && 'a' > @v && !('' <= @v)")),
}

#: In JavaScript null is 0 beside a number, and beside a text that means a number. It equals neither.
NULLS_IN_JAVASCRIPT = {
    "integers": _rows((1, "@t < 1 && @t <= 0 && !(@t > 0) && @t >= 0 && @t > -1 && !(@t < 0) && 0 <= @t && @t != 0")),
    "texts": _rows((1, "!(@v < 'a') && !(@v >= 'a') && @v < '5' && @v >= '' && !(@v > ' 0x1 ') && '-.5e1' < @v")),
}

#: Conditions on rows behind an ExtractNewRecordState.
OF_ROWS = {
    "customers": "value.email != '' && value.__deleted == 'false' || value.id == 103",
    "orders": "value.note == null || value.note < 'k'",
    "composite": "value.__op == 'u' || value.c > 1.25",
}

ENVELOPES_TO_TOPICS = (
    "value.op == 'd' ? 'topics.gone' : value.after.id < 100 ? 'topics.low' : value.op == 'u' && value.before.id < 100"
    " ? 'topics.risen' : null"
)
