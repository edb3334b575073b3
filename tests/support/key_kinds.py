"""Tables for every kind of key, with edge values. Their only other columns are `which` and `version`.

`which` numbers the keys. No type and no collation changes this number, so tables and topics are compared by it.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from random import Random

#: Most keys of a table.
KEYS = 24
#: Keys of two columns, each of which may be null.
_NULLABLE_PAIRS = tuple((f"{a}, {b}",) for a in ("NULL", "1", "2", "3") for b in ("NULL", "''", "'x'", "'y'", "'z'"))
#: A unique number, and a second one that is null or that other rows have too.
_SHARED_NUMBERS = tuple(tuple(f"{i}, {s}" for s in ("NULL", i % 4, 9 - i % 7)) for i in range(KEYS))


@dataclass(frozen=True, slots=True)
class KeyKind:
    """A table for one kind of key."""

    name: str  #: name of the table
    columns: str  #: columns in CREATE TABLE, after `which` and `version`
    #: for each key the SQL of `written`, in all spellings that the table considers equal
    values: tuple[tuple[str, ...], ...]
    written: str = "k"  #: columns that a writer sets
    surrogate: str = ""  #: surrogate key that orders the chunks; "": none
    message_key: str = ""  #: columns for `message.key.columns`; "": none
    settings: str = ""  #: SQL that the session runs before CREATE TABLE


def _kind(name: str, type_: str, values: list[str]) -> KeyKind:
    return KeyKind(name, f"k {type_} PRIMARY KEY", tuple((value,) for value in values[:KEYS]))


def _numbers(name: str, type_: str, low: int, high: int) -> KeyKind:
    middle = [value for value in range(-8, 12) if low < value < high]
    return _kind(name, type_, [str(value) for value in (low, *middle, high - 1, high)])


def _quoted(values: list[str]) -> list[str]:
    return [f"'{value}'" for value in values]


def _words() -> list[str]:
    plain = [
        "",
        "a",
        "ae",
        "b",
        "b_",
        "z",
        "\\'",
        '"',
        "\\\\",
        "%",
        "日本",
        "😀",
        "\\n",
        "0",
        "10",
        "9",
        "ö-1",
        "{}",
        ",",
    ]
    return [*plain, *(f"w{i}" for i in range(KEYS - len(plain)))]


def _spelled(values: list[str], *others: tuple[str, str]) -> tuple[tuple[str, ...], ...]:
    """Return keys with one spelling, and `others`, which have two spellings."""
    return (*others, *((value,) for value in _quoted(values)))


def _uuids() -> list[str]:
    rng = Random(1)
    return [f"x'{uuid.UUID(int=rng.getrandbits(128)).hex}'" for _ in range(KEYS - 2)] + [f"x'{d * 32}'" for d in "0F"]


def _doubles(*more: str) -> list[str]:
    return ["-1.5e0", "0e0", "0.1e0", "1.1e0", "16777216e0", "1e-30", "3e38", *more, *(f"{i}.25e0" for i in range(10))]


def _days(format_: str) -> list[str]:
    return [f"'{format_.format(i)}'" for i in range(1, 21)]


#: Literals of an ENUM. MySQL orders an ENUM by its literals' numbers, not by their texts.
_LETTERS = [*"zyxwvutsrqponmlkjih", "10", "2"]

KINDS = (
    _numbers("tinyints", "TINYINT", -128, 127),
    _numbers("tinyints_unsigned", "TINYINT UNSIGNED", 0, 255),
    _numbers("smallints", "SMALLINT", -32768, 32767),
    _numbers("mediumints", "MEDIUMINT UNSIGNED", 0, 2**24 - 1),
    _numbers("ints", "INT", -(2**31), 2**31 - 1),
    _numbers("bigints", "BIGINT", -(2**63), 2**63 - 1),
    _kind(
        "bigints_unsigned",
        "BIGINT UNSIGNED",
        [
            *map(str, (0, 1, 2**53, 2**53 + 1, 2**53 + 2, 2**63 - 1, 2**63, 2**63 + 1, 2**64 - 1)),
            *map(str, range(2, 14)),
        ],
    ),
    _kind(
        "decimals",
        "DECIMAL(38,10)",
        [
            "-1.5",
            "0",
            "0.0000000001",
            "12345678901234567890.1",
            "12345678901234567890.2",
            *(f"{i}.1" for i in range(15)),
        ],
    ),
    _kind("floats", "FLOAT", _doubles("0.10000001e0", "123456.789e0")),
    _kind("doubles", "DOUBLE", _doubles("0.30000000000000004e0", "0.3e0", "1e300", "-1e-300")),
    KeyKind(
        "padded",
        "k CHAR(20) CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci PRIMARY KEY",
        _spelled(_words()[:18], ("'Upper'", "'uPPER'"), ("'pad'", "'pad  '"), ("'Öl'", "'ol'")),
    ),
    KeyKind(
        "accents",
        "k VARCHAR(20) CHARACTER SET utf8mb4 COLLATE utf8mb4_0900_ai_ci PRIMARY KEY",
        _spelled(_words()[:18], ("'Jérôme'", "'jerome'"), ("'ß'", "'SS'"), ("'end'", "'END'"), ("'end '", "'End '")),
    ),
    _kind("exact", "VARCHAR(20) COLLATE utf8mb4_bin", ["'A'", "'Ä'", "'ä'", "'B'", *_quoted(_words()[:19])]),
    KeyKind(
        "latin1",
        "k VARCHAR(20) CHARACTER SET latin1 COLLATE latin1_german1_ci PRIMARY KEY",
        _spelled(
            ["", "a", "b", "z", "\\'", "\\\\", *(f"w{i}" for i in range(12))], ("'Ärger'", "'arger'"), ("'€'", "'€'")
        ),
    ),
    _kind(
        "gbk",
        "VARCHAR(20) CHARACTER SET gbk",
        _quoted(["", "a", "中", "中文", "b", "\\'", *(f"w{i}" for i in range(12))]),
    ),
    _kind("binary_uuids", "BINARY(16)", _uuids()),
    _kind(
        "bytes",
        "VARBINARY(20)",
        [
            "x''",
            "x'00'",
            "x'0000'",
            "x'27'",
            "x'5C'",
            "x'61'",
            "x'6120'",
            "x'FF'",
            "x'FF00'",
            *(f"x'{i:04X}'" for i in range(9, 22)),
        ],
    ),
    _kind("dates", "DATE", ["'1000-01-01'", "'1969-12-31'", "'1970-01-01'", "'9999-12-31'", *_days("2024-02-{:02d}")]),
    _kind(
        "datetimes",
        "DATETIME(6)",
        ["'1999-12-31 23:59:59.999999'", "'2000-01-01'", *_days("2024-03-31 02:30:00.0000{:02d}")],
    ),
    _kind("timestamps", "TIMESTAMP(3)", ["'2038-01-19 03:14:07'", *_days("2024-10-27 02:30:00.5{:02d}")]),
    _kind(
        "times",
        "TIME(6)",
        ["'-838:59:59'", "'-00:00:00.000001'", "'00:00:00'", "'838:59:59'", *_days("12:{:02d}:00.5")],
    ),
    _kind("years", "YEAR", ["0", *map(str, (1901, 2155, *range(1990, 2010)))]),
    _kind("enums", f"ENUM({', '.join(_quoted(_LETTERS))})", _quoted(_LETTERS)),
    _kind("sets", "SET('z', 'a', '10', '2', 'ö')", [str(i) for i in range(22)]),
    _kind("bits", "BIT(64)", ["0", "1", "255", str(1 << 63), str((1 << 64) - 1), *map(str, range(2, 20))]),
    KeyKind(
        "composites",
        "a INT, b VARCHAR(9), c DATE, PRIMARY KEY (b, a, c)",
        tuple((f"{i % 3}, '{'xyz'[i % 2]}', '2024-01-{1 + i // 6:02d}'",) for i in range(KEYS)),
        written="a, b, c",
    ),
    KeyKind(
        "descending",
        "a INT, b INT, PRIMARY KEY (a DESC, b)",
        tuple((f"{i // 6}, {i % 6}",) for i in range(KEYS)),
        written="a, b",
    ),
    KeyKind(
        "of_both_directions",
        "a VARCHAR(9), b DATE, c DECIMAL(5,2), PRIMARY KEY (a, b DESC, c)",
        tuple((f"'{'xyz'[i % 3]}', '2024-01-{1 + i // 3 % 4:02d}', {i}.25",) for i in range(KEYS)),
        written="a, b, c",
    ),
    KeyKind(
        "descending_message_key",
        "a INT NULL, b VARCHAR(9) NULL, KEY (a DESC, b)",
        _NULLABLE_PAIRS,
        written="a, b",
        message_key="a,b",
    ),
    KeyKind(
        "descending_surrogate",
        "k INT PRIMARY KEY, s INT NULL, KEY (s DESC, k)",
        _SHARED_NUMBERS,
        written="k, s",
        surrogate="s",
    ),
    KeyKind("prefixes", "k VARCHAR(20), PRIMARY KEY (k(4))", tuple((f"'p{i:03d} and more'",) for i in range(KEYS))),
    KeyKind(
        "generated",
        "base INT NOT NULL, k BIGINT GENERATED ALWAYS AS (-base * 3) STORED PRIMARY KEY",
        tuple((str(i),) for i in range(KEYS)),
        written="base",
    ),
    KeyKind(
        "unique_not_null",
        "a INT NOT NULL, b INT NOT NULL, UNIQUE KEY (b, a)",
        tuple((f"{i % 5}, {i}",) for i in range(KEYS)),
        written="a, b",
    ),
    KeyKind(
        "invisible",
        "k INT",
        tuple(("7",) for _ in range(KEYS)),
        settings="SET SESSION sql_generate_invisible_primary_key = ON",
    ),
    KeyKind(
        "nullable_message_key",
        "a INT NULL, b VARCHAR(9) NULL, KEY (b)",
        _NULLABLE_PAIRS,
        written="a, b",
        message_key="a,b",
    ),
    KeyKind(
        "shared_surrogate",
        "k INT PRIMARY KEY, s INT NULL, KEY (s)",
        _SHARED_NUMBERS,
        written="k, s",
        surrogate="s",
    ),
    KeyKind(
        "keyless_surrogate",
        "k INT NULL, s INT NULL, KEY (s)",
        tuple(tuple(f"{i or 'NULL'}, {s}" for s in ("NULL", i % 4, 9 - i % 7)) for i in range(KEYS)),
        written="k, s",
        message_key="k",
        surrogate="s",
    ),
)
