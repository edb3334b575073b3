"""Tests of the order in which a table is read in chunks, and of the reasons why it cannot be read."""

from __future__ import annotations

import pytest

from incsnap.envelope.column_rules import ColumnRules
from incsnap.planner.table_ordering import CatalogEntry, Ordering, TableRefused, check_types, ordering_of
from incsnap.snapshot import notifications as notes
from incsnap.tables import Column, Index, TableId, TableShape

T = TableId("db", "t")
ID, AT, TEXT = (
    Column("id", "bigint", nullable=False),
    Column("at", "datetime", nullable=False),
    Column("text", "varchar", length=40, charset="utf8mb4"),
)


def entry(*indexes: Index, key: tuple[int, ...] = (0,), columns: tuple[Column, ...] = (ID, AT, TEXT)) -> CatalogEntry:
    return CatalogEntry(TableShape(T, columns, key), {}, indexes)


def ordering(catalog_entry: CatalogEntry, surrogate: str = "") -> Ordering:
    return ordering_of(catalog_entry, check_types(catalog_entry, ColumnRules()), surrogate)


def refusal(catalog_entry: CatalogEntry, surrogate: str = "") -> TableRefused:
    with pytest.raises(TableRefused) as refused:
        ordering(catalog_entry, surrogate)
    return refused.value


def test_the_primary_key_orders_a_table_by_the_index_that_begins_with_it() -> None:
    indexes = [Index("other", ("at", "id")), Index("PRIMARY", ("id",)), Index("wide", ("id", "at"))]
    assert ordering(entry(*indexes)) == Ordering((ID,), "PRIMARY")
    assert ordering(entry(*indexes[::2])) == Ordering((ID,), "wide")


def test_a_key_of_several_columns_needs_an_index_in_its_own_order() -> None:
    others = [Index("turned", ("id", "at")), Index("part", ("at",))]
    assert ordering(entry(*others, key=(1, 0))) == Ordering((AT, ID), "")
    assert ordering(entry(*others, Index("right", ("at", "id", None)), key=(1, 0))) == Ordering((AT, ID), "right")


def test_a_key_runs_as_its_index_does() -> None:
    both = Index("PRIMARY", ("at", "id", "text"), ("at", "text"))
    assert ordering(entry(both, key=(1, 0))) == Ordering((AT, ID), "PRIMARY", ("at",))
    assert ordering(entry(Index("PRIMARY", ("id",), ("id",)))) == Ordering((ID,), "PRIMARY", ("id",))
    by_at = Index("by_at", ("at", "text"), ("at", "text"))
    assert ordering(entry(Index("PRIMARY", ("id",)), by_at), "at") == Ordering((AT, TEXT, ID), "by_at", ("at", "text"))
    assert ordering(entry(Index("other", ("at", "id"), ("at", "id")))) == Ordering((ID,), "")


def test_a_surrogate_key_orders_the_rows_and_the_primary_key_those_of_one_value() -> None:
    primary = Index("PRIMARY", ("id",))
    assert ordering(entry(primary, Index("by_time", ("at", "id"))), "at") == Ordering((AT, ID), "by_time")
    assert ordering(entry(primary, Index("by_time", ("at",))), "at") == Ordering((AT, ID), "by_time")
    longer, exact = Index("longer", ("at", "text")), Index("exact", ("at",))
    assert ordering(entry(primary, longer), "at") == Ordering((AT, TEXT, ID), "longer")
    assert ordering(entry(primary, longer, exact), "at") == Ordering((AT, ID), "exact")


def test_rows_of_one_value_of_a_surrogate_key_run_as_the_primary_key_does() -> None:
    down = Index("PRIMARY", ("text", "id"), ("id",))
    by_time = Index("by_time", ("at",), ("at",))
    assert ordering(entry(down, by_time, key=(2, 0)), "at") == Ordering((AT, TEXT, ID), "by_time", ("at", "id"))
    assert ordering(entry(down, Index("by_id", ("id",)), key=(2, 0)), "id") == Ordering((ID, TEXT), "by_id")


def test_an_index_orders_a_surrogate_key_only_with_the_whole_primary_key_behind_it() -> None:
    by_time, part = Index("by_time", ("at",)), Index("PRIMARY", (None,))
    assert ordering(entry(part, by_time), "at") == Ordering((AT, ID), "")
    assert ordering(entry(by_time, Index("part", ("at", None, "id"))), "at") == Ordering((AT, ID), "")


def test_a_surrogate_key_needs_no_index() -> None:
    assert ordering(entry(Index("PRIMARY", ("id",))), "at") == Ordering((AT, ID), "")
    assert ordering(entry(key=()), "at") == Ordering((AT,), "")


def test_a_surrogate_key_is_found_in_any_letter_case() -> None:
    assert ordering(entry(Index("PRIMARY", ("id",)), Index("by_time", ("at",))), "AT") == Ordering((AT, ID), "by_time")


def test_a_surrogate_key_must_be_a_column() -> None:
    gone = refusal(entry(Index("PRIMARY", ("id",))), "nothing")
    assert (gone.status, gone.reason) == (notes.NO_PRIMARY_KEY, "it has no column nothing (its surrogate-key)")


def test_rows_that_nothing_tells_apart_need_a_surrogate_key() -> None:
    unkeyed = entry(Index("by_time", ("at",)), key=())
    refused = refusal(unkeyed, "")
    assert refused.status == notes.NO_PRIMARY_KEY
    assert "message.key.columns" in refused.reason
    assert ordering(unkeyed, "at") == Ordering((AT,), "by_time")


def test_a_key_that_cannot_be_compared_is_refused() -> None:
    document = Column("id", "json", nullable=False)
    refused = refusal(entry(Index("PRIMARY", ("id",)), columns=(document, AT)))
    assert refused.status == notes.NO_PRIMARY_KEY


def test_a_table_with_a_column_that_cannot_be_read_is_skipped_by_name() -> None:
    refused = refusal(
        entry(Index("PRIMARY", ("id",)), columns=(ID, Column("odd", "timestamp (format before MySQL 5.6)")))
    )
    assert refused.status == notes.SKIPPED
    assert "db.t" in refused.reason
    assert "odd" in refused.reason
