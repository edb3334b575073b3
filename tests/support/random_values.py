"""Random values for every type: a column's definition, and values for it as bound parameters."""

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
#: Characters of each character set whose codes need special care, beside ASCII.
CHARACTERS = {
    "armscii8": "աՖ», ", "big5": "中文字碁，", "cp1250": "žščř€", "cp1251": "Привет№", "cp1256": "مرحبا",
    "cp1257": "žščąė", "cp850": "éüß", "cp852": "žšč", "cp866": "Приветⁿ", "cp932": "日本①髙ｱ～", "dec8": "éŒ¤",
    "eucjpms": "日本①髙ｱ～Ⅹ\ue000~", "euckr": "한국어갂", "gb18030": "中文€😀ḿ\ue7c7", "gb2312": "中文",
    "gbk": "中文丂", "geostd8": "აბჰ€№", "greek": "αβγʽ", "hebrew": "שלום‾", "hp8": "éü£", "keybcs2": "žščťČ≤",
    "koi8r": "Привет", "koi8u": "Привіт•", "latin2": "žščř", "latin5": "ğşı", "latin7": "žšąė", "macce": "žščř",
    "macroman": "é√∞", "sjis": "ソ表日本ｱ", "swe7": "ÅÄÖåäöÉ", "tis620": "สวัสดี", "ucs2": "é€中\uffff",
    "ujis": "日本ｱ\ue000丂", "utf16": "é€中😀", "utf16le": "é€中😀", "utf32": "é€中😀",
}  # fmt: skip
GEOMETRIES = ("geometry", "point", "linestring", "polygon", "multipoint", "multilinestring", "multipolygon",
              "geometrycollection")  # fmt: skip

_LATIN1 = "abc XYZ09'\"\\\n€äßñéŸþÿ\x81\x8d\x9d"


@dataclass(frozen=True, slots=True)
class ColumnCase:
    """A column, and random values for it."""

    sql: str  #: the column's definition without its name
    value: Callable[[random.Random], Any]  #: returns a random value, never None


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
    # MySQL removes trailing blanks of a CHAR. The rest must still be compared exactly.
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
    """Return a document with all kinds of values. Some are large enough for four-byte offsets."""
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


def _geometry(kind: str) -> Callable[[random.Random], Any]:
    """Return a generator of values in MySQL's form, SRID and WKB, for a column without an SRID."""

    def points(r: random.Random, least: int) -> bytes:
        count = r.randint(least, least + 3)
        return struct.pack("<I", count) + b"".join(point(r) for _ in range(count))

    def point(r: random.Random) -> bytes:
        return struct.pack("<dd", *(r.choice([0.0, -1.5, r.uniform(-1e3, 1e3), 1e300]) for _ in "xy"))

    def ring(r: random.Random) -> bytes:
        corner = [(0.0, 0.0), (r.uniform(1, 9), 0.0), (1.0, r.uniform(1, 9)), (0.0, 0.0)]
        return struct.pack("<II", 1, 4) + b"".join(struct.pack("<dd", *xy) for xy in corner)

    def many(r: random.Random, of: str, least: int) -> bytes:
        count = r.randint(least, 3)
        return struct.pack("<I", count) + b"".join(wkb(r, of) for _ in range(count))

    bodies: dict[str, Callable[[random.Random], bytes]] = {
        "point": point,
        "linestring": lambda r: points(r, 2),
        "polygon": ring,
        "multipoint": lambda r: many(r, "point", 1),
        "multilinestring": lambda r: many(r, "linestring", 1),
        "multipolygon": lambda r: many(r, "polygon", 1),
        "geometrycollection": lambda r: many(r, r.choice(["point", "linestring", "multipoint"]), 0),
    }

    def wkb(r: random.Random, of: str) -> bytes:
        of = r.choice(list(bodies)) if of == "geometry" else of
        return struct.pack("<BI", 1, GEOMETRIES.index(of)) + bodies[of](r)

    return lambda r: struct.pack("<I", r.choice([0, 0, 3857])) + wkb(r, kind)


def _vector(r: random.Random) -> bytes:
    return b"".join(struct.pack("<f", r.choice([_float(r), 0.1, -0.0])) for _ in range(r.randint(1, 5)))


def _set(literals: list[str]) -> Callable[[random.Random], Any]:
    return lambda r: ",".join(literal for literal in literals if r.random() < r.choice([0.05, 0.5, 1]))


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
    "enum_gbk": ColumnCase("enum('中','x文') character set gbk", lambda r: r.choice(["中", "x文"])),
    "enum_utf16": ColumnCase("enum('é','中','') character set utf16", lambda r: r.choice(["é", "中", ""])),
    "enum_binary": ColumnCase("enum('é','b') character set binary", lambda r: r.choice(["é", "b"])),
    "set": ColumnCase("set('a','it''s','ü漢','\"')", _set(["a", "it's", "ü漢", '"'])),
    "set_full": ColumnCase(f"set({','.join(repr(f'v{i}') for i in range(64))})", _set([f"v{i}" for i in range(64)])),
    "set_sjis": ColumnCase("set('表','x','ソ') character set sjis", _set(["表", "x", "ソ"])),
    **{
        f"bit_{bits}": ColumnCase(f"bit({bits})", _integer(bits, signed=False))
        for bits in (1, 2, 7, 8, 9, 16, 17, 33, 63, 64)
    },
    **{
        f"varchar_{charset}": ColumnCase(f"varchar(40) character set {charset}", _text(own + "abc 09~?", 40))
        for charset, own in CHARACTERS.items()
        if charset != "swe7"
    },
    "varchar_swe7": ColumnCase("varchar(40) character set swe7", _text(CHARACTERS["swe7"] + "abc 09?", 40)),
    "char_gbk": ColumnCase("char(9) character set gbk", _stripped(CHARACTERS["gbk"] + "ab ", 9)),
    "char_utf16": ColumnCase("char(9) character set utf16", _stripped(CHARACTERS["utf16"] + "ab ", 9)),
    "text_big5": ColumnCase("text character set big5", _text(CHARACTERS["big5"] + "ab ", 300)),
    "tinytext_utf32": ColumnCase("tinytext character set utf32", _text(CHARACTERS["utf32"] + "ab ", 60)),
    **{f"shape_{kind}": ColumnCase(kind, _geometry(kind)) for kind in GEOMETRIES},
    "vector": ColumnCase("vector(5)", _vector),
    "date": ColumnCase("date", _date),
    **{f"time_{digits}": ColumnCase(f"time({digits})", _time(digits)) for digits in range(7)},
    **{f"datetime_{digits}": ColumnCase(f"datetime({digits})", _datetime(digits)) for digits in range(7)},
    **{f"timestamp_{digits}": ColumnCase(f"timestamp({digits}) null", _timestamp(digits)) for digits in range(7)},
    "json": ColumnCase("json", _json),
}  # fmt: skip

_EPOCH = datetime(1970, 1, 1)


def canonical(column: str, value: Any) -> Any:
    """Return the canonical value of `value`, which PyMySQL returned for the case `column`."""
    if value is None:
        return None
    family = column.split("_")[0]
    if family == "enum":
        return value.decode() if isinstance(value, bytes) else value
    if family == "bit":
        return int.from_bytes(value, "big")
    if family in ("datetime", "timestamp"):
        return (value - _EPOCH) // timedelta(microseconds=1)
    if family == "date":
        return (value - _EPOCH.date()).days
    if family == "time":
        return value // timedelta(microseconds=1)
    return compact(value) if family == "json" else value


def compact(text: str) -> str:
    """Return the server's JSON text without the blanks outside strings."""
    return re.sub(r'("(?:[^"\\]|\\.)*")| ', lambda match: match[1] or "", text)
