"""The DEFAULTs that a statement gives to new columns, as far as its text tells them."""

from __future__ import annotations

import pytest

from incsnap.ddl.column_origins import defaults_behind
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
