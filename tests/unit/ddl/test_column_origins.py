"""The origins of columns, and the DEFAULTs of new ones, as far as a statement's text tells them."""

from __future__ import annotations

import pytest

from incsnap.ddl.column_origins import defaults_behind, origins_behind, read_alteration
from incsnap.ddl.online_names import GH_OST, PT_OSC, SPIRIT
from incsnap.events import Session

SESSION = Session("shop", 0, explicit_timestamps=True)


@pytest.mark.parametrize(
    ("clause", "default"),
    [
        ("c INT DEFAULT 5", "5"),
        ("c INT NOT NULL DEFAULT -1.50e-3", "-1.50E-3"),
        ("c DECIMAL(4,2) DEFAULT .5", ".5"),
        ("c VARCHAR(20) DEFAULT 'it''s \\n ' 'long'", "it's \n long"),
        ("c INT DEFAULT TRUE AFTER id", "1"),
        ("c INT DEFAULT NULL", None),
        ("c INT", None),
        ("c INT DEFAULT (1 + 1)", None),
        ("c DATETIME DEFAULT CURRENT_TIMESTAMP(3)", None),
        ("c BINARY(3) DEFAULT 0x616263", None),
        ("c BIT(3) DEFAULT b'101'", None),
        ("c DATE DEFAULT DATE '2024-02-29'", None),
    ],
)
def test_a_default_is_told_if_it_is_a_string_or_a_number(clause: str, default: str | None) -> None:
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
