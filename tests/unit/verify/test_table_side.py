"""Tests of the keys by which the table side finds rows, without a server."""

from __future__ import annotations

import pytest

from incsnap.config.load import from_properties
from incsnap.tables import Column, TableId, TableShape
from incsnap.tasks.formats import format_of
from incsnap.verify.record_reading import RecordForm
from incsnap.verify.table_side import VerifiedTable, _where, owned_keys
from tests.support.properties import QUIET

SETTINGS = from_properties({**QUIET, "key.converter.decimal.format": "numeric"}).settings
SHAPE = TableShape(TableId("d", "t"), (Column("n", "decimal", precision=30, scale=10),), (0,))
FORMAT = format_of(SETTINGS, SHAPE)
TABLE = VerifiedTable(SHAPE, "p.t", 1, RecordForm.of(FORMAT, SETTINGS.formats))
LONG = b"12345678901234567890.1234567891"


def test_a_decimal_in_a_key_finds_its_own_row() -> None:
    assert LONG.decode() in _where(FORMAT, [b'{"n":%s}' % LONG])


def test_a_table_can_own_a_key_with_a_long_decimal() -> None:
    assert owned_keys(SETTINGS, TABLE, [b'{"n":%s}' % LONG])
    assert not owned_keys(SETTINGS, TABLE, [b'{"n":%s}' % LONG[:-1]])


@pytest.mark.parametrize("number", [b"1e400", b"1e999999999", b"1e999999999999999999", b"1e99999999999999999999"])
def test_no_row_has_a_number_of_another_size(number: bytes) -> None:
    assert not owned_keys(SETTINGS, TABLE, [b'{"n":%s}' % number])
    assert _where(FORMAT, [b'{"n":%s}' % number]) == ""


@pytest.mark.parametrize("at", [0, 1, 3])
def test_a_key_that_no_row_can_have_leaves_the_other_keys_of_a_list_alone(at: int) -> None:
    keys = [b'{"n":1.0000000000}', b'{"n":2.0000000000}', b'{"n":3.0000000000}']
    odd = b'{"n":"abc"}'
    asked = [*keys[:at], odd, *keys[at:]]

    assert owned_keys(SETTINGS, TABLE, asked) == set(keys)
    assert _where(FORMAT, asked) == _where(FORMAT, keys) != ""
