"""The origins of columns, and the DEFAULTs of new ones, as far as a statement's text tells them."""

from __future__ import annotations

import pytest

from incsnap.ddl.column_origins import (
    changes_indexes_alone,
    defaults_behind,
    origins_behind,
    read_alteration,
    replaced_columns,
)
from incsnap.ddl.online_names import GH_OST, PT_OSC, SPIRIT
from incsnap.events import Session

SESSION = Session("shop", 0, explicit_timestamps=True, connection="utf8mb4")


@pytest.mark.parametrize(
    ("clause", "default"),
    [
        ("c INT DEFAULT 5", "5"),
        ("c INT NOT NULL DEFAULT -1.50e-3", "0"),
        ("c INT DEFAULT 1.5", "2"),
        ("c INT DEFAULT -2.5", "-3"),
        ("c INT DEFAULT 2.5e0", None),
        ("c INT DEFAULT '7'", "7"),
        ("c INT DEFAULT 'x'", None),
        ("c DOUBLE DEFAULT -1.50e-3", "-1.50E-3"),
        ("c DECIMAL(4,2) DEFAULT .5", "0.50"),
        (
            "c DECIMAL(65,1) DEFAULT 9999999999999999999999999999999999999999999999999999999999999999.25",
            "9999999999999999999999999999999999999999999999999999999999999999.3",
        ),
        ("c YEAR DEFAULT 70", None),
        ("c YEAR DEFAULT '1970'", "1970"),
        ("c TIME DEFAULT '09:00:00'", "09:00:00"),
        ("c TIME(3) DEFAULT '-109:00:00.5'", "-109:00:00.500"),
        ("c TIME DEFAULT '9:00'", None),
        ("c TIME DEFAULT '09:00:00.6'", None),
        ("c TIME DEFAULT 90000", None),
        ("c DATE DEFAULT '2024-2-9'", None),
        ("c DATETIME DEFAULT '2024-02-29'", None),
        ("c DATETIME(6) DEFAULT '2024-02-29 01:02:03'", "2024-02-29 01:02:03.000000"),
        ("c DATETIME DEFAULT '2024-02-29 01:02:03.6'", None),
        ("c ENUM('Open','Closed ') DEFAULT 'open'", "Open"),
        ("c ENUM('Open','Closed ') DEFAULT 'closed'", "Closed"),
        ("c ENUM('a','A') COLLATE utf8mb4_bin DEFAULT 'a'", None),
        ("c ENUM('a','b') DEFAULT '2'", None),
        ("c SET('x','y','z') DEFAULT 'z,X'", "x,z"),
        ("c SET('x','y') DEFAULT ''", ""),
        ("c CHAR(5) DEFAULT 'a '", "a"),
        ("c VARCHAR(5) DEFAULT 'a '", "a "),
        ("c VARCHAR(20) DEFAULT 'it''s \\n ' 'long'", "it's \n long"),
        ("c INT DEFAULT TRUE AFTER id", "1"),
        ("c INT DEFAULT NULL", None),
        ("c INT", None),
        ("c INT DEFAULT (1 + 1)", None),
        ("c DATETIME DEFAULT CURRENT_TIMESTAMP(3)", None),
        ("c BINARY(3) DEFAULT 0x616263", "abc"),
        ("c BINARY(3) DEFAULT 'a'", "a\0\0"),
        ("c VARBINARY(3) DEFAULT 'é'", "Ã©"),
        ("c VARBINARY(9) DEFAULT X'ff0'", "\x0f\xf0"),
        ("c BIT(1) NOT NULL DEFAULT b'1'", "1"),
        ("c BIT NOT NULL DEFAULT 0", "0"),
        ("c BIT(3) DEFAULT b'101'", "\x05"),
        ("c BIT(12) DEFAULT 258", "\x01\x02"),
        ("c BIT(3) DEFAULT '1.5'", None),
        ("c BIT(8) DEFAULT '5'", "5"),
        ("c BIT(16) DEFAULT '12'", "12"),
        ("c BIT(1) DEFAULT '1'", None),
        ("c BIT DEFAULT TRUE", "1"),
        ("c BIT(4) DEFAULT -1", None),
        ("c INT DEFAULT 0x10", "16"),
        ("c INT DEFAULT -0x10", None),
        ("c INT DEFAULT 0b11", "3"),
        ("c DECIMAL(5,1) UNSIGNED DEFAULT x'0A'", "10.0"),
        ("c VARCHAR(5) DEFAULT x'6162'", "ab"),
        ("c VARCHAR(5) DEFAULT x'D096'", None),
        ("c VARCHAR(5) DEFAULT x''", ""),
        ("c VARCHAR(5) DEFAULT N'x'", "x"),
        ("c VARCHAR(5) DEFAULT N'ж'", "ж"),
        ("c VARCHAR(5) DEFAULT _utf8mb4'x' 'y'", "xy"),
        ("c VARCHAR(5) DEFAULT _latin1 'ж'", None),
        ("c VARCHAR(5) DEFAULT _ucs2'ab'", None),
        ("c VARCHAR(5) DEFAULT _utf8mb4 x'6162'", None),
        ("c VARCHAR(5) DEFAULT _utf8mb4 0x6162", None),
        ("c DATE DEFAULT DATE '2024-02-29'", "2024-02-29"),
        ("c DATETIME DEFAULT TIMESTAMP '2024-02-29 01:02:03'", "2024-02-29 01:02:03"),
        ("c DATETIME DEFAULT '2024-02-29 01:02:03+02:00'", None),
        ("c TIMESTAMP DEFAULT TIMESTAMP'2024-02-29 01:02:03-11:00'", None),
        ("c INT DEFAULT 0xzz", None),
        ("c INT DEFAULT _utf8mb4 y", None),
    ],
)
def test_a_default_is_told_if_the_statement_tells_its_value(clause: str, default: str | None) -> None:
    expected = {} if default is None else {"c": default}

    assert defaults_behind(f"ALTER TABLE t ADD COLUMN {clause}, DROP COLUMN d", SESSION) == expected


def test_only_new_columns_have_one() -> None:
    assert defaults_behind("ALTER TABLE t MODIFY c INT DEFAULT 5, ADD (D INT DEFAULT 1, e INT)", SESSION) == {"d": "1"}
    assert defaults_behind("CREATE TABLE t (c INT DEFAULT 5)", SESSION) == {}


@pytest.mark.parametrize(
    ("clauses", "by_tool"),
    [
        ("ADD n INT", {GH_OST: {"n": None}, PT_OSC: {"n": None}, SPIRIT: {"n": None}}),
        ("CHANGE a b INT", {GH_OST: {"b": "a"}, PT_OSC: {"b": "a"}, SPIRIT: {"b": "a"}}),
        ("RENAME COLUMN a TO b", {GH_OST: None, PT_OSC: None, SPIRIT: {"b": "a"}}),
        ("RENAME COLUMN a TO b, ADD COLUMN a INT", {GH_OST: None, PT_OSC: None, SPIRIT: {"b": "a", "a": None}}),
        ("DROP a, ADD a INT", {GH_OST: {"a": None}, PT_OSC: None, SPIRIT: {"a": None}}),
    ],
)
def test_a_tool_may_copy_other_columns_than_its_statement_says(
    clauses: str, by_tool: dict[str, dict[str, str | None] | None]
) -> None:
    alteration = read_alteration(f"ALTER TABLE t {clauses}", SESSION)
    origins = {tool: origins_behind({}, alteration, tool) for tool in by_tool}
    assert origins == by_tool
    native = origins_behind({}, alteration)
    assert native == by_tool[SPIRIT]


@pytest.mark.parametrize(
    ("clauses", "replaced"),
    [
        (["DROP COLUMN id, ADD COLUMN Id INT NOT NULL AUTO_INCREMENT PRIMARY KEY FIRST"], {"id"}),
        (["RENAME COLUMN a TO b, RENAME COLUMN b TO a"], {"a", "b"}),
        (["CHANGE id old INT, CHANGE new id INT"], {"old", "id"}),
        (["CHANGE id id BIGINT, MODIFY a INT FIRST, DROP b, ADD INDEX (a)"], set()),
        (["RENAME COLUMN id TO x", "RENAME COLUMN x TO id"], set()),
        (["DROP COLUMN id", "ADD COLUMN id INT"], {"id"}),
        (["ADD n INT", "DROP n"], set()),
        # A statement that is not understood.
        (["DROP COLUMN id, ADD COLUMN id INT WHATEVER"], None),
        (["ADD COLUMN n INT WHATEVER"], set()),
    ],
)
def test_a_column_is_replaced_if_another_one_has_its_name(clauses: list[str], replaced: set[str] | None) -> None:
    statements = [f"ALTER /* gh-ost */ TABLE t {each}" for each in clauses]

    assert replaced_columns(statements, SESSION) == replaced


def test_another_statement_replaces_no_column() -> None:
    for sql in ("DROP TABLE t", "RENAME TABLE t TO u", "DROP INDEX i ON t", "TRUNCATE t", "`", "ALTER VIEW DROP"):
        assert replaced_columns([sql], SESSION) == frozenset()


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("CREATE INDEX i ON t (v)", True),
        ("create unique index i on t (v)", True),
        ("DROP INDEX i ON t", True),
        ("ALTER TABLE t ADD INDEX i (v), DROP KEY j, ALGORITHM=INPLACE", True),
        ("/* a migration */ ALTER TABLE t RENAME INDEX i TO j", True),
        ("ALTER TABLE t ADD INDEX i (v), ADD w INT", False),
        ("ALTER TABLE t ADD w INT UNIQUE", False),
        ("ALTER TABLE t ADD INDEX i (v), ALTER v SET DEFAULT 5", False),
        ("ALTER TABLE t DROP PARTITION p", False),
        ("ALTER TABLE t ADD INDEX i (v) PARTITION BY HASH (id)", False),
        ("ALTER TABLE t DROP INDEX i, ENGINE=BLACKHOLE", False),
        ("ALTER TABLE t ENGINE=InnoDB", False),
        ("ALTER TABLE t ADD INDEX i (v), RENAME TO u", False),
        ("ALTER TABLE t ADD INDEX i (v), CONVERT TO CHARACTER SET latin1", False),
        ("CREATE TABLE t (id INT)", False),
        ("DROP TABLE t", False),
        ("TRUNCATE TABLE t", False),
        ("ALTER TABLE t what is this", False),
    ],
)
def test_a_statement_about_indexes_alone_changes_no_row(sql: str, expected: bool) -> None:
    assert changes_indexes_alone(sql, SESSION) == expected
