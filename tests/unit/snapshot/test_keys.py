"""Tests of the snapshot's pure modules: keys, chunk statements, failures, windows, offsets and compact JSON."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest

from incsnap.errors import UnsupportedType
from incsnap.events import StreamPosition
from incsnap.gtid import GtidSet
from incsnap.snapshot.chunk_query import between, chunk_tail, maximum_key, next_boundary
from incsnap.snapshot.dataclass_json import from_json, to_json
from incsnap.snapshot.failures import Verdict, back_off_ms, verdict
from incsnap.snapshot.keys import key_fingerprint, key_literal, key_select, show_key, table_fingerprint
from incsnap.snapshot.notifications import comma_list
from incsnap.snapshot.offset import Offset, TopicLayout
from incsnap.snapshot.window import Chunk, ChunkResult, discard_batches, low_watermark_of, ordering_columns, released_by
from incsnap.tables import Column, TableId, TableShape
from tests.support.snapshots import SERVER, A, Snapshots, execute, position

T = TableId("db", "t`x")
ID = Column("id", "bigint", nullable=False, unsigned=True)
NAME = Column("na`me", "varchar", charset="latin1")


@pytest.mark.parametrize(
    ("column", "value", "select", "literal"),
    [
        (ID, "18446744073709551615", "CAST(`id` AS CHAR)", "18446744073709551615"),
        (Column("k", "int"), "-1", "CAST(`k` AS CHAR)", "-1"),
        (Column("k", "decimal", precision=5, scale=2), "-1.50", "CAST(`k` AS CHAR)", "-1.50"),
        (Column("k", "double"), "0.1", "CAST(`k` + 0e0 AS CHAR)", "0.1e0"),
        (Column("k", "float"), "1e-30", "CAST(`k` + 0e0 AS CHAR)", "1e-30"),
        (NAME, "é'\\", "`na``me`", "_utf8mb4 x'c3a9275c'"),
        (NAME, "", "`na``me`", "_utf8mb4 x''"),
        (Column("k", "varbinary"), "00FF", "HEX(`k`)", "x'00FF'"),
        (Column("k", "enum", values=("b", "a")), "2", "CAST(`k` + 0 AS CHAR)", "2"),
        (Column("k", "set", values=("b", "a")), "3", "CAST(`k` + 0 AS CHAR)", "3"),
        (Column("k", "bit", length=64), "18446744073709551615", "CAST(`k` + 0 AS CHAR)", "18446744073709551615"),
        (Column("k", "char", charset="gbk"), "D6D0", "HEX(`k`)", "_gbk x'D6D0'"),
        (Column("k", "time", fraction=6), "-00:00:00.500000", "CAST(`k` AS CHAR)", "'-00:00:00.500000'"),
        (Column("k", "year"), "0", "CAST(`k` AS CHAR)", "0"),
    ],
)
def test_a_key_value_is_selected_as_text_and_written_back_as_a_literal(
    column: Column, value: str, select: str, literal: str
) -> None:
    assert key_select(column) == select
    assert key_literal(column, value) == literal


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("int", "1 OR 1=1"),
        ("int", ""),
        ("decimal", "1e5"),
        ("date", "2024-01-01' OR '"),
        ("blob", "0"),
        ("float", "nan"),
    ],
)
def test_an_invalid_value_of_a_column_never_reaches_sql(kind: str, value: str) -> None:
    with pytest.raises(ValueError, match="is not a value of column k"):
        key_literal(Column("k", kind), value)


def test_null_bounds_no_chunk() -> None:
    with pytest.raises(ValueError, match="NULL"):
        key_literal(ID, None)


@pytest.mark.parametrize("kind", ["json", "geometry", "point", "vector"])
def test_a_type_that_cannot_order_chunks_is_refused_by_name(kind: str) -> None:
    column = Column("k", kind)

    with pytest.raises(UnsupportedType, match=f"column k of type {kind}"):
        key_select(column)
    with pytest.raises(UnsupportedType, match=f"column k of type {kind}"):
        key_literal(column, "1")


def test_the_fingerprint_changes_with_whatever_changes_the_order() -> None:
    base = Column("k", "varchar", charset="utf8mb4", length=10)
    others = [
        (Column("l", "varchar", charset="utf8mb4", length=10), {}),
        (Column("k", "varbinary", charset="binary", length=10), {}),
        (Column("k", "enum", values=("a", "b")), {}),
        (Column("k", "enum", values=("b", "a")), {}),
        (base, {"k": "utf8mb4_bin"}),
        (base, {"k": "utf8mb4_0900_ai_ci"}),
    ]
    fingerprints = {key_fingerprint([column], collations) for column, collations in [(base, {}), *others]}
    fingerprints.add(key_fingerprint([base], {}, ("k",)))

    assert len(fingerprints) == len(others) + 2


def test_the_fingerprint_of_a_key_that_ascends_is_that_of_older_offsets() -> None:
    assert key_fingerprint([ID, NAME], {NAME.name: "latin1_bin"}) == (
        "id bigint unsigned(0,0,0,0)/; na`me varchar(0,0,0,0)latin1/latin1_bin"
    )


def test_the_fingerprint_of_a_table_whose_key_orders_it_is_that_of_older_offsets() -> None:
    key = [ID, replace(NAME, nullable=False)]
    assert table_fingerprint(key, key, key) == key_fingerprint(key)


def test_the_fingerprint_of_a_table_changes_with_its_identity_and_its_record_key() -> None:
    at, other = Column("at", "datetime"), Column("other", "int", nullable=False)
    wider, nullable = replace(other, type="bigint"), replace(other, nullable=True)
    tables = [
        ([ID], [ID]),
        ([other], [ID]),
        ([ID], [other]),
        ([ID], [wider]),
        ([ID], [nullable]),
        ([ID], [ID, other]),
        ([ID], [other, ID]),
        ([other], [other]),
        ([wider], [wider]),
    ]
    assert len({table_fingerprint([at], identity, key) for identity, key in tables}) == len(tables)


def test_keys_are_shown_as_debezium_does_and_cut() -> None:
    assert show_key(("1", None, "x")) == "1,<null>,x"
    assert show_key(None) == "<null>"
    assert len(show_key(("x" * 1000,))) == 80


def test_the_maximum_key_is_asked_of_the_forced_index() -> None:
    assert maximum_key(T, [ID, NAME]) == (
        "SELECT CAST(`id` AS CHAR), `na``me` FROM `db`.`t``x` FORCE INDEX (`PRIMARY`)"
        " ORDER BY `id` DESC, `na``me` DESC LIMIT 1"
    )


def test_the_next_boundary_is_the_nth_key_after_the_last() -> None:
    assert next_boundary(T, [ID], ("5",), ("9",), 100) == (
        "SELECT CAST(`id` AS CHAR) FROM `db`.`t``x` FORCE INDEX (`PRIMARY`)"
        " WHERE (`id` > 5) AND (`id` <= 9) ORDER BY `id` LIMIT 1 OFFSET 99"
    )


def test_a_composite_range_is_a_triangle_behind_the_range_of_its_leading_column() -> None:
    a, b = Column("a", "int", nullable=False), Column("b", "int", nullable=False)
    chunk = Chunk(T, ("a", "b"), ("1", "5"), ("2", "6"), "a <> b OR b = 3", "by_ab")

    assert chunk_tail(chunk, [a, b]) == (
        "FROM `db`.`t``x` FORCE INDEX (`by_ab`)"
        " WHERE (`a` >= 1 AND ((`a` > 1) OR (`a` = 1 AND `b` > 5)))"
        " AND (`a` <= 2 AND ((`a` < 2) OR (`a` = 2 AND `b` <= 6)))"
        " AND (a <> b OR b = 3) ORDER BY `a`, `b`"
    )


def test_null_comes_before_all_values_in_bounds() -> None:
    a, b = Column("a", "int"), Column("b", "int")

    assert between([a, b], (None, "5"), ("2", None)) == (
        "(TRUE AND ((`a` IS NOT NULL) OR (`a` IS NULL AND `b` > 5)))"
        " AND ((`a` <= 2 OR `a` IS NULL) AND (((`a` < 2 OR `a` IS NULL)) OR (`a` = 2 AND `b` IS NULL)))"
    )


def test_columns_that_descend_are_compared_and_sorted_the_other_way() -> None:
    a, b = Column("a", "int", nullable=False), Column("b", "int", nullable=False)
    chunk = Chunk(T, ("a", "b"), ("2", "5"), ("1", "6"), descending=("a",))

    assert chunk_tail(chunk, [a, b]) == (
        "FROM `db`.`t``x` FORCE INDEX (`PRIMARY`)"
        " WHERE (`a` <= 2 AND ((`a` < 2) OR (`a` = 2 AND `b` > 5)))"
        " AND (`a` >= 1 AND ((`a` > 1) OR (`a` = 1 AND `b` <= 6)))"
        " ORDER BY `a` DESC, `b`"
    )
    assert maximum_key(T, [a, b], descending=("a",)).endswith(" ORDER BY `a`, `b` DESC LIMIT 1")
    assert next_boundary(T, [a, b], None, ("1", "6"), 3, descending=("a",)).endswith(
        "WHERE (`a` >= 1 AND ((`a` > 1) OR (`a` = 1 AND `b` <= 6))) ORDER BY `a` DESC, `b` LIMIT 1 OFFSET 2"
    )


def test_null_comes_behind_all_values_of_a_column_that_descends() -> None:
    a, b = Column("a", "int"), Column("b", "int")

    assert between([a, b], ("2", "5"), (None, None), ("a",)) == (
        "((`a` <= 2 OR `a` IS NULL) AND (((`a` < 2 OR `a` IS NULL)) OR (`a` = 2 AND `b` > 5)))"
        " AND (TRUE AND ((`a` IS NOT NULL) OR (`a` IS NULL AND `b` IS NULL)))"
    )


def test_a_prefix_that_both_bounds_share_becomes_an_equality() -> None:
    a, b = Column("a", "int", nullable=False), Column("b", "int", nullable=False)

    assert chunk_tail(Chunk(T, ("a", "b"), ("1", "5"), ("1", "6"), index=""), [a, b]) == (
        "FROM `db`.`t``x` WHERE `a` = 1 AND (`b` > 5) AND (`b` <= 6) ORDER BY `a`, `b`"
    )


def test_the_ordering_columns_are_found_by_name_in_the_present_shape() -> None:
    shape = TableShape(T, (NAME, ID), (1,))

    assert ordering_columns(shape, ("id",)) == (ID,)
    with pytest.raises(KeyError):
        ordering_columns(shape, ("gone",))


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        ("stalled: WAIT_FOR_EXECUTED_GTID_SET", Verdict.READ_AGAIN),
        ("unreachable: gone away", Verdict.READ_AGAIN),
        ("shape: column x is gone", Verdict.READ_AGAIN),
        ("lost: no manifest", Verdict.READ_AGAIN),
        ("timeout: 3024", Verdict.SPLIT),
        ("too_large: 512 MiB", Verdict.SPLIT),
        ("shared_key: two rows", Verdict.SPLIT),
        ("unsupported: geometry", Verdict.GIVE_UP),
        ("1205: Lock wait timeout exceeded", Verdict.COUNT),
        ("anything", Verdict.COUNT),
    ],
)
def test_the_kind_of_an_error_decides_what_is_done(error: str, expected: Verdict) -> None:
    assert verdict(error) is expected


def test_the_back_off_doubles_and_is_bounded() -> None:
    assert [back_off_ms(n) for n in (1, 2, 3, 20)] == [250, 500, 1_000, 30_000]


def test_long_lists_of_tables_are_cut() -> None:
    assert comma_list(["a", "b"]) == "a,b"
    assert comma_list([*map(str, range(53))]).endswith("48,49,... 3 more")
    assert comma_list([*map(str, range(53))], 2) == "0,1,... 51 more"
    assert comma_list([*map(str, range(50))], 2).endswith("48,49")


def test_the_low_watermark_covers_the_transaction_that_the_end_cuts_in_two() -> None:
    whole = position(10)
    opened = StreamPosition(whole.delivered, whole.file, whole.pos, f"{SERVER}:tag:7", 3)

    assert low_watermark_of(whole) == whole.delivered
    assert low_watermark_of(opened) == whole.delivered | GtidSet.parse(f"{SERVER}:tag:7")


def test_an_offset_tells_its_batch_what_to_read_hold_and_release() -> None:
    job = Snapshots({A: [1, 2, 3, 4, 5]})
    job.batch(execute("s", A), pos=10)
    reads = Offset("job", 1, position(10), TopicLayout(1), job.context).reads()
    assert [(read.window.id, read.chunk.upper, read.low_watermark) for read in reads] == [
        ("1-0", ("2",), position(10).delivered),
        ("1-1", ("4",), position(10).delivered),
    ]

    job.batch(pos=20)
    offset = Offset("job", 2, position(20), TopicLayout(1), job.context)
    assert offset.snapshot.held_tables() == {A}
    assert offset.releases() == ()
    assert offset.oldest_discards() == 2

    job.batch(pos=200)
    last = Offset("job", 3, position(200), TopicLayout(1), job.context)
    assert [(release.window.id, release.discards) for release in last.releases()] == [
        ("1-0", range(2, 3)),
        ("1-1", range(2, 3)),
        ("2-0", range(3, 3)),
    ]
    assert discard_batches(last.releases()[0].window, 3) == range(2, 3)


@pytest.mark.parametrize(
    ("result", "released"),
    [
        (ChunkResult(high_file="b.000009", high_pos=500, server_uuid=SERVER), True),
        (ChunkResult(high_file="b.000010", high_pos=100, server_uuid=SERVER), True),
        (ChunkResult(high_file="b.000010", high_pos=101, server_uuid=SERVER), False),
        (ChunkResult(high_file="b.000009", high_pos=500, server_uuid="other"), False),
        (ChunkResult(high_file="b.000009", high_pos=500, server_uuid=SERVER, error="x"), False),
        (None, False),
    ],
)
def test_a_window_is_released_by_a_position_past_its_high_watermark(result: ChunkResult | None, released: bool) -> None:
    job = Snapshots({A: [1]})
    window = job.batch(execute("s", A)).context.planned[0]
    end = StreamPosition(GtidSet(), "b.000010", 100)

    assert released_by(replace(window, result=result), end, SERVER) == released


@dataclass(frozen=True, slots=True)
class Sample:
    table: TableId
    pairs: tuple[tuple[str, int], ...] = ()
    maybe: float | None = None
    on: bool = False


def test_values_become_compact_json_and_come_back() -> None:
    sample = Sample(A, (("x", 1),), 2.0)

    assert to_json(Sample, Sample(A)) == {"table": ["db", "a"]}
    assert to_json(Sample, sample) == {"table": ["db", "a"], "pairs": [["x", 1]], "maybe": 2.0}
    assert from_json(Sample, to_json(Sample, sample)) == sample


@pytest.mark.parametrize(
    ("document", "named"),
    [
        ({}, "table: Field required"),
        ({"table": ["db"]}, r"table\.1: Field required"),
        ({"table": ["db", 1]}, r"table\.1: .*string"),
        ({"table": ["db", "a"], "on": 1}, "on: .*boolean"),
        ({"table": ["db", "a"], "new": 1}, "new: Unexpected"),
        ({"table": ["db", "a"], "pairs": [["x"]]}, r"pairs\.0\.1: Field required"),
        ({"table": ["db", "a"], "pairs": [["x", "1"]]}, r"pairs\.0\.1: .*integer"),
        ({"table": ["db", "a"], "maybe": "1"}, "maybe: .*number"),
        ([], "Sample"),
    ],
)
def test_json_that_does_not_fit_is_refused(document: object, named: str) -> None:
    with pytest.raises(ValueError, match=named):
        from_json(Sample, document)
