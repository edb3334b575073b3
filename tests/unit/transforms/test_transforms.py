"""Tests of the transforms, applied to each kind of record of a table."""

from __future__ import annotations

from typing import Any

import pytest

from incsnap.envelope.record_encoder import CHANGES, READ, TRUNCATION, Operation, specs_of, topics
from incsnap.errors import ConfigError
from incsnap.transforms.chain import Chain, Step, apply_chain
from incsnap.transforms.conditions import AnyOf, Choice, Not, OneOf, Ordered
from incsnap.transforms.content_router import ContentBasedRouter
from incsnap.transforms.edits import EditFields, SetSchemaMetadata
from incsnap.transforms.filter import Drop, Filter
from incsnap.transforms.predicates import HasHeaderKey, RecordIsTombstone, TopicNameMatches
from incsnap.transforms.read_to_insert import ReadToInsertEvent
from incsnap.transforms.record_spec import (
    CastFields,
    Constant,
    ConvertTimestamp,
    EnvelopeField,
    ExtractField,
    KeepFields,
    MaskFields,
    RecordSpec,
    Route,
    ValueShape,
    change_spec,
)
from incsnap.transforms.routers import ByLogicalTableRouter, RegexRouter
from incsnap.transforms.unwrap import MODES, ExtractNewRecordState

OP, TABLE = EnvelopeField("", "op", "__op"), EnvelopeField("source", "table", "__table")
NOTICE = RecordSpec("p", "", ValueShape.OTHER, "k")


def specs_by_operation(*chain: Any) -> dict[str, RecordSpec | None]:
    steps: Chain = tuple(each if isinstance(each, Step) else Step(each) for each in chain)
    by_kind = specs_of("p.d.t", steps, "none")
    return {each.op or "tombstone": by_kind[each] for each in (READ, *CHANGES[:4], TRUNCATION)}


def values(*chain: Any) -> dict[str, ValueShape | None]:
    return {op: None if spec is None else spec.value for op, spec in specs_by_operation(*chain).items()}


def test_without_transforms_all_are_as_debezium_makes_them() -> None:
    envelopes = dict.fromkeys("rcudt", ValueShape.ENVELOPE)
    assert values() == {**envelopes, "tombstone": ValueShape.NOTHING}


@pytest.mark.parametrize(
    ("mode", "deletion", "tombstone"),
    [
        ("drop", None, None),
        ("tombstone", ValueShape.EMPTY_ROW, None),
        ("rewrite", ValueShape.ROW, None),
        ("rewrite-with-tombstone", ValueShape.ROW, ValueShape.NOTHING),
        ("delete-to-tombstone", ValueShape.NOTHING, None),
    ],
)
def test_each_mode_of_unwrap_has_its_own_deletions(
    mode: str, deletion: ValueShape | None, tombstone: ValueShape | None
) -> None:
    rows = dict.fromkeys("rcu", ValueShape.ROW)
    assert values(ExtractNewRecordState(mode)) == {**rows, "d": deletion, "tombstone": tombstone, "t": None}


@pytest.mark.parametrize("mode", MODES)
def test_whether_a_row_was_deleted_stands_before_other_fields(mode: str) -> None:
    spec = specs_by_operation(ExtractNewRecordState(mode, (OP,)))["c"]
    assert spec is not None
    deleted = (Constant("__deleted", "false"),) if mode.startswith("rewrite") else ()
    assert spec.fields == (*deleted, OP)


def test_a_record_that_is_no_envelope_stays_as_it_is() -> None:
    unwrap = ExtractNewRecordState(headers=(OP,))
    assert unwrap.apply(NOTICE) == NOTICE
    row = unwrap.apply(change_spec("t"))
    assert row is not None
    assert unwrap.apply(row) == row


def test_a_tombstone_has_the_headers_of_its_deletion_and_the_operation_once_more() -> None:
    spec = specs_by_operation(ExtractNewRecordState("rewrite-with-tombstone", headers=(TABLE, OP)))["tombstone"]
    assert spec is not None
    assert spec.headers == (TABLE, OP, Constant("__op", "d"))


def test_rows_and_deletions_go_where_they_say_and_tombstones_do_not() -> None:
    route = Route("unwrap", "lane")
    for mode in MODES:
        by_kind = specs_by_operation(ExtractNewRecordState(mode, route=route))
        routed = {op for op, spec in by_kind.items() if spec is not None and spec.route == route}
        assert routed == ({*"rcu"} if mode == "drop" else {*"rcud"})
    # The row before a deletion says it, so a deletion is written by itself.
    deletion, insertion = by_kind["d"], by_kind["c"]
    assert deletion is not None
    assert insertion is not None
    assert deletion.encoder_key.op == "d"
    assert not insertion.encoder_key.op


def test_no_transform_stands_behind_one_whose_rows_say_where_they_go() -> None:
    with pytest.raises(ConfigError, match="stands behind unwrap") as error:
        specs_by_operation(ExtractNewRecordState(route=Route("unwrap", "lane")), RegexRouter("a", "b"))
    assert "remove its route.by.field" in (error.value.hint or "")


def test_behind_a_router_a_tombstone_has_headers_of_its_own() -> None:
    spec = specs_by_operation(
        RegexRouter("p.*", "q"), ExtractNewRecordState("rewrite-with-tombstone", headers=(TABLE, OP))
    )
    assert spec["tombstone"] is not None
    assert spec["tombstone"].headers == (Constant("__op", "d"),)


def test_rows_of_snapshots_become_insertions_and_share_the_encoder_of_nothing_else() -> None:
    plain, inserted = specs_by_operation(), specs_by_operation(ReadToInsertEvent())
    assert {op: spec for op, spec in inserted.items() if op != "r"} == {
        op: spec for op, spec in plain.items() if op != "r"
    }
    read, insertion = inserted["r"], inserted["c"]
    assert read is not None
    assert insertion is not None
    assert (read.op, read.read_op, insertion.read_op) == ("c", "c", "r")
    assert read.encoder_key != insertion.encoder_key


@pytest.mark.parametrize(
    "earlier",
    [ExtractNewRecordState(), SetSchemaMetadata("Value", "com.example.Change")],
    ids=["no envelope", "an envelope of another name"],
)
def test_rows_of_snapshots_become_insertions_in_what_debezium_takes_for_envelopes_alone(earlier: Any) -> None:
    assert specs_by_operation(earlier, ReadToInsertEvent()) == specs_by_operation(earlier)


def test_a_condition_behind_a_read_to_insert_sees_an_insertion() -> None:
    kept = Filter("f", OneOf(("op",), ("r",)))
    behind, before = specs_by_operation(ReadToInsertEvent(), kept), specs_by_operation(kept, ReadToInsertEvent())
    assert behind["r"] is None
    assert before["r"] is not None
    assert before["r"].read_op == "c"


def test_predicates_choose_the_records_that_a_transform_is_asked_about() -> None:
    unwrap = ExtractNewRecordState("rewrite-with-tombstone")
    assert values(Step(Drop(), RecordIsTombstone()))["tombstone"] is None
    assert values(Step(Drop(), RecordIsTombstone()))["d"] is ValueShape.ENVELOPE
    # A deletion without value counts as one, whatever schema it has.
    assert values(ExtractNewRecordState(), Step(Drop(), RecordIsTombstone()))["d"] is None
    assert values(Step(unwrap, TopicNameMatches(r"p\.d")))["c"] is ValueShape.ENVELOPE
    assert values(Step(unwrap, TopicNameMatches(r"p\.d"), negate=True))["c"] is ValueShape.ROW
    moved = specs_of("p.d.t", (Step(Drop(), HasHeaderKey("__debezium.newkey")),), "none")
    assert [kind for kind, spec in moved.items() if spec is None] == [
        Operation("d", moved=True),
        Operation("", moved=True),
    ]
    added = specs_of("p.d.t", (Step(ExtractNewRecordState(headers=(OP,))), Step(Drop(), HasHeaderKey("__op"))), "none")
    assert not any(added.values())


def test_a_router_by_regex_changes_the_topic_alone() -> None:
    spec = RegexRouter(r"(\w)\.(.*)", "$2.$1").apply(change_spec("p.d.t"))
    assert spec == change_spec("p.d.t").__class__(
        "d.t.p", "c", ValueShape.ENVELOPE, "p.d.t.Key", "p.d.t.Value", "p.d.t.Envelope"
    )
    assert RegexRouter("no", "x").apply(NOTICE) == NOTICE


def test_a_logical_table_has_its_names_and_tells_keys_apart() -> None:
    router = ByLogicalTableRouter(r"p\.d_(\d+)\.(.*)", "p.$2", key_regex=r".*_(\d+)\..*", key_replacement="shard $1")
    spec = router.apply(change_spec("p.d_7.a-b"))
    assert (spec.topic, spec.key_name, spec.row_name) == ("p.a-b", "p.a-b.Key", "p.a-b.Value")
    assert spec.envelope_name == "p.a-b.Envelope"
    assert spec.key_fields == (Constant("__dbz__physicalTableIdentifier", "shard 7"),)
    adjusted = ByLogicalTableRouter(r"p\.d_(\d+)\.(.*)", "p.$2", key_field="", schema_names="avro")
    assert adjusted.apply(change_spec("p.d_7.a-b")).key_name == "p.a_b.Key"
    assert adjusted.apply(change_spec("p.d_7.a-b")).key_fields == ()
    assert router.apply(change_spec("elsewhere")) == change_spec("elsewhere")
    assert ByLogicalTableRouter(".*", "").apply(change_spec("t")) == change_spec("t")


def test_a_logical_table_leaves_the_names_of_rows_that_are_unwrapped() -> None:
    spec = specs_by_operation(ExtractNewRecordState(), ByLogicalTableRouter(".*", "all"))["c"]
    assert spec is not None
    assert (spec.topic, spec.key_name, spec.row_name) == ("all", "all.Key", "p.d.t.Value")
    assert spec.key_fields == (Constant("__dbz__physicalTableIdentifier", "p.d.t"),)


def test_a_filter_keeps_what_its_condition_is_true_of() -> None:
    kept = values(Filter("f", OneOf(("op",), ("c", "r"))))
    assert [op for op, value in kept.items() if value] == ["r", "c", "tombstone"]
    assert values(Filter("f", OneOf(("op",), ("c", "r")), keeps_empty=False))["tombstone"] is None
    assert values(Filter("f", OneOf(("op",), ("c",)), topic_regex=r"p\.e\..*"))["u"] is ValueShape.ENVELOPE


def test_a_filter_cannot_be_asked_about_what_has_no_operation() -> None:
    with pytest.raises(ConfigError, match=r"transforms\.f\.condition: the script asks for value\.op") as caught:
        apply_chain((Step(Filter("f", OneOf(("op",), ("c",)))),), NOTICE)
    assert "transforms.f.topic.regex" in caught.value.hint


_EDITS: list[tuple[Any, str]] = [
    (MaskFields(("v",)), "MaskField"),
    (KeepFields(exclude=("v",)), "ReplaceField"),
    (KeepFields(include=("id",)), "ReplaceField"),
    (KeepFields(renames=(("w", "v"),)), "ReplaceField"),
    (CastFields((("v", "string"),)), "Cast"),
    (ConvertTimestamp("v", "unix"), "TimestampConverter"),
    (ExtractField("x"), "ExtractField"),
]


@pytest.mark.parametrize(("edit", "class_"), _EDITS)
def test_a_condition_on_a_column_stands_before_the_transform_that_edits_it(edit: Any, class_: str) -> None:
    unwrap, edits = ExtractNewRecordState("rewrite"), EditFields("e", "Value", edit)
    condition = Not(AnyOf((OneOf(("id",), (1,)), Ordered(("v",), "<", 5))))
    for last in (Filter("f", condition), ContentBasedRouter("f", Choice(condition, "x", None))):
        with pytest.raises(ConfigError, match=rf"transforms\.f\..* asks for (v|id) behind a {class_}") as refused:
            values(unwrap, edits, last)
        assert f"Let transforms.f stand before the {class_}" in refused.value.hint
    assert values(unwrap, Filter("f", condition), edits)["u"] is ValueShape.ROW


def test_a_condition_may_stand_behind_edits_of_other_columns_and_of_keys() -> None:
    other = EditFields("e", "Value", KeepFields(exclude=("w",), renames=(("x", "y"),)))
    of_key = EditFields("k", "Key", MaskFields(("v",)))
    by_column = Filter("f", OneOf(("v",), (1,)))
    assert values(ExtractNewRecordState(), other, of_key, by_column)["u"] is ValueShape.ROW


def test_topics_begin_with_that_of_rows_read_by_select() -> None:
    chain: Chain = (Step(RegexRouter(".*", "gone"), RecordIsTombstone()), Step(RegexRouter(r"p\.(.*)", "$1")))
    assert topics("p.d.t", chain, "none") == ("d.t", "gone")
    assert topics("p.d.t", (Step(Drop()),), "none") == ()
