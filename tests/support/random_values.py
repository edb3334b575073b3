"""Random values for every type of the slice: a column's definition and what may be put into it, as bound parameters."""

from __future__ import annotations

import json
import math
import random
import re
import struct
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

_TEXT = "abc XYZ019'\"\\\t\n\x01\x7f€äßñ漢字😀é"
_LATIN1 = "abc XYZ09'\"\\\n€äßñéŸþÿ\x81\x8d\x9d"


@dataclass(frozen=True, slots=True)
class ColumnCase:
    """``sql``: the column's definition without its name; ``value``: a random value of it, never None."""

    sql: str
    value: Callable[[random.Random], Any]


def _integer(bits: int, *, signed: bool) -> Callable[[random.Random], Any]:
    low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)
    return lambda r: r.choice(
        [low, high, 0, 1, max(low, -1), r.randint(low, high), r.randint(low, high) >> r.randrange(bits)]
    )


def _decimal(precision: int, scale: int) -> Callable[[random.Random], Any]:
    def value(r: random.Random) -> Any:
        top = 10 ** r.choice([precision, r.randint(1, precision)]) - 1
        unscaled = r.choice([top, 0, 1, r.randint(0, top), r.randint(0, top)])
        # Through text: Python's decimal context would round 65 digits.
        text = f"{unscaled:0{scale + 1}d}"
        return Decimal(f"{r.choice('+-')}{text[: len(text) - scale]}.{text[len(text) - scale :]}")

    return value


def _text(alphabet: str, most: int) -> Callable[[random.Random], Any]:
    return lambda r: "".join(
        r.choices(alphabet, k=r.choice([0, 1, r.randint(0, min(14, most)), r.randint(0, most), most]))
    )


def _stripped(alphabet: str, most: int) -> Callable[[random.Random], Any]:
    # CHAR loses trailing blanks when it is stored; what is left must still be compared exactly.
    return lambda r: _text(alphabet, most)(r).rstrip(" ")


def _bytes(most: int) -> Callable[[random.Random], Any]:
    return lambda r: r.randbytes(r.choice([0, 1, r.randint(0, min(14, most)), r.randint(0, most), most]))


def _double(r: random.Random) -> float:
    value: float = struct.unpack("<d", r.randbytes(8))[0]
    return r.choice([0.0, -1.5, 0.1, r.uniform(-1e6, 1e6), value if math.isfinite(value) else 1e308])


def _float(r: random.Random) -> float:
    value: float = struct.unpack("<f", r.randbytes(4))[0]
    return r.choice([0.0, -1.5, r.randint(-4096, 4096) / 64, value if math.isfinite(value) else 1.0])


def _date(r: random.Random) -> str:
    return r.choice(
        ["0001-01-01", "9999-12-31", "1970-01-01", "2024-02-29", str(date.fromordinal(r.randint(1, 3652059)))]
    )


def _fraction(r: random.Random, digits: int) -> str:
    return f".{r.choice([0, 1, 10**digits - 1, r.randrange(10**digits)]):0{digits}d}" if digits else ""


def _datetime(digits: int) -> Callable[[random.Random], Any]:
    return lambda r: (
        f"{_date(r)} {r.randrange(24):02d}:{r.randrange(60):02d}:{r.randrange(60):02d}{_fraction(r, digits)}"
    )


def _time(digits: int) -> Callable[[random.Random], Any]:
    def value(r: random.Random) -> str:
        hours = r.choice([0, 0, 23, 837, r.randrange(838)])
        return f"{r.choice(['', '-'])}{hours:02d}:{r.randrange(60):02d}:{r.randrange(60):02d}{_fraction(r, digits)}"

    return value


def _timestamp(digits: int) -> Callable[[random.Random], Any]:
    def value(r: random.Random) -> str:
        seconds = r.choice([1, 2**31 - 2, r.randrange(1, 2**31 - 1)])
        return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M:%S}{_fraction(r, digits)}"

    return value


def json_value(r: random.Random, depth: int = 0) -> Any:
    """A document with every kind of value; now and then one that is large enough for four-byte offsets."""
    kind = r.randrange(12 if depth < 5 else 9)
    simple: list[Callable[[], Any]] = [
        lambda: None,
        lambda: r.choice([True, False]),
        lambda: r.randint(-(1 << r.randrange(1, 64)), 1 << r.randrange(1, 64)),
        lambda: r.randint(0, 2**64 - 1),
        lambda: _double(r),
        lambda: r.uniform(0.5, 1) * 10.0 ** r.randint(-20, 20),
        lambda: r.randint(0, 10**6) / 10 ** r.randint(0, 4),
        lambda: "".join(r.choices(_TEXT, k=r.choice([0, 3, 40, 200]))),
        lambda: "".join(chr(r.choice([r.randrange(0x30), r.randrange(0xD800), r.randrange(2**16, 0x110000)]))
                        for _ in range(9)),
    ]  # fmt: skip
    if kind < 9:
        return simple[kind]()
    size = r.choice([0, 1, 3, 6]) if depth else r.choice([0, 3, 8, 9000 if r.random() < 0.05 else 20])
    if kind == 9:
        return {"".join(r.choices(_TEXT, k=r.randint(0, 8))) + str(i): json_value(r, depth + 1) for i in range(size)}
    return [json_value(r, depth + 1) for _ in range(size)]


def _json(r: random.Random) -> str:
    return json.dumps(json_value(r), ensure_ascii=r.random() < 0.5)


CASES: dict[str, ColumnCase] = {
    **{
        f"{name}{'' if signed else '_unsigned'}": ColumnCase(
            f"{name}{'' if signed else ' unsigned'}", _integer(bits, signed=signed)
        )
        for name, bits in {"tinyint": 8, "smallint": 16, "mediumint": 24, "int": 32, "bigint": 64}.items()
        for signed in (True, False)
    },
    **{
        f"decimal_{precision}_{scale}": ColumnCase(f"decimal({precision},{scale})", _decimal(precision, scale))
        for precision, scale in [(1, 0), (1, 1), (5, 2), (9, 9), (10, 0), (12, 2), (17, 9), (18, 0), (18, 5), (19, 0),
                                 (20, 10), (30, 30), (37, 3), (38, 9), (38, 0), (39, 2), (50, 25), (65, 0), (65, 30)]
    },
    "float": ColumnCase("float", _float),
    "double": ColumnCase("double", _double),
    "year": ColumnCase("year", lambda r: r.choice([0, 1901, 2155, r.randint(1901, 2155)])),
    "char": ColumnCase("char(20)", _stripped(_TEXT, 20)),
    "char_wide": ColumnCase("char(255)", _stripped(_TEXT, 255)),
    "char_ascii": ColumnCase("char(16) character set ascii", _stripped("abcXYZ09 ", 16)),
    "varchar": ColumnCase("varchar(63)", _text(_TEXT, 63)),
    "varchar_wide": ColumnCase("varchar(300)", _text(_TEXT, 300)),
    "varchar_mb3": ColumnCase("varchar(80) character set utf8mb3", _text(_TEXT.replace("😀", ""), 80)),
    "varchar_latin1": ColumnCase("varchar(90) character set latin1", _text(_LATIN1, 90)),
    "text_latin1": ColumnCase("text character set latin1", _text(_LATIN1, 400)),
    "tinytext": ColumnCase("tinytext", _text(_TEXT[:20], 63)),
    "text": ColumnCase("text", _text(_TEXT, 5000)),
    "mediumtext": ColumnCase("mediumtext", _text(_TEXT, 3000)),
    "longtext": ColumnCase("longtext", _text(_TEXT, 2000)),
    "binary": ColumnCase("binary(20)", _bytes(20)),
    "binary_one": ColumnCase("binary(1)", _bytes(1)),
    "varbinary": ColumnCase("varbinary(60)", _bytes(60)),
    "varbinary_wide": ColumnCase("varbinary(600)", _bytes(600)),
    "tinyblob": ColumnCase("tinyblob", _bytes(255)),
    "blob": ColumnCase("blob", _bytes(4000)),
    "mediumblob": ColumnCase("mediumblob", _bytes(70000)),
    "longblob": ColumnCase("longblob", _bytes(3000)),
    "enum": ColumnCase(
        "enum('new','päid','it''s \\\"x\\\"','漢')", lambda r: r.choice(["new", "päid", "it's \"x\"", "漢"])
    ),
    "enum_latin1": ColumnCase("enum('a','ä€') character set latin1", lambda r: r.choice(["a", "ä€"])),
    "enum_many": ColumnCase(f"enum({','.join(repr(f'v{i}') for i in range(300))})", lambda r: f"v{r.randrange(300)}"),
    "date": ColumnCase("date", _date),
    **{f"time_{digits}": ColumnCase(f"time({digits})", _time(digits)) for digits in range(7)},
    **{f"datetime_{digits}": ColumnCase(f"datetime({digits})", _datetime(digits)) for digits in range(7)},
    **{f"timestamp_{digits}": ColumnCase(f"timestamp({digits}) null", _timestamp(digits)) for digits in range(7)},
    "json": ColumnCase("json", _json),
}  # fmt: skip

_EPOCH = datetime(1970, 1, 1)


def canonical(column: str, value: Any) -> Any:
    """What PyMySQL gave for a SELECT (typed) of the case ``column`` as the canonical column's Python value."""
    if value is None:
        return None
    family = column.split("_")[0]
    if family in ("datetime", "timestamp"):
        return (value - _EPOCH) // timedelta(microseconds=1)
    if family == "date":
        return (value - _EPOCH.date()).days
    if family == "time":
        return value // timedelta(microseconds=1)
    return compact(value) if family == "json" else value


def compact(text: str) -> str:
    """The server's JSON text without the blanks outside strings: keep strings, drop the blanks between them."""
    return re.sub(r'("(?:[^"\\]|\\.)*")| ', lambda match: match[1] or "", text)
