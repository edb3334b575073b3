"""What transforms make of each kind of record of a table."""

from __future__ import annotations

from typing import Any

import pytest

from incsnap.envelope.written import CHANGES, READ, TRUNCATION, Kind, forms, topics
from incsnap.errors import ConfigError
from incsnap.transforms.chain import Chain, Step, passed
from incsnap.transforms.filter import Drop, Filter
from incsnap.transforms.form import Constant, Form, Reference, Route, Value, change_form
from incsnap.transforms.predicates import HasHeaderKey, RecordIsTombstone, TopicNameMatches
from incsnap.transforms.routers import ByLogicalTableRouter, RegexRouter
from incsnap.transforms.unwrap import MODES, ExtractNewRecordState

OP, TABLE = Reference("", "op", "__op"), Reference("source", "table", "__table")
NOTICE = Form("p", "", Value.OTHER, "k")


def forms_by_operation(*chain: Any) -> dict[str, Form | None]:
    steps: Chain = tuple(each if isinstance(each, Step) else Step(each) for each in chain)
    by_kind = forms("p.d.t", steps, "none")
    return {each.op or "tombstone": by_kind[each] for each in (READ, *CHANGES[:4], TRUNCATION)}


def values(*chain: Any) -> dict[str, Value | None]:
    return {op: None if form is None else form.value for op, form in forms_by_operation(*chain).items()}


def test_without_transforms_all_are_as_debezium_makes_them() -> None:
    envelopes = dict.fromkeys("rcudt", Value.ENVELOPE)
    assert values() == {**envelopes, "tombstone": Value.NOTHING}


@pytest.mark.parametrize(
    ("mode", "deletion", "tombstone"),
    [
        ("drop", None, None),
        ("tombstone", Value.EMPTY_ROW, None),
        ("rewrite", Value.ROW, None),
        ("rewrite-with-tombstone", Value.ROW, Value.NOTHING),
        ("delete-to-tombstone", Value.NOTHING, None),
    ],
)
def test_each_mode_of_unwrap_has_its_own_deletions(mode: str, deletion: Value | None, tombstone: Value | None) -> None:
    rows = dict.fromkeys("rcu", Value.ROW)
    assert values(ExtractNewRecordState(mode)) == {**rows, "d": deletion, "tombstone": tombstone, "t": None}


@pytest.mark.parametrize("mode", MODES)
def test_whether_a_row_was_deleted_stands_before_other_fields(mode: str) -> None:
    form = forms_by_operation(ExtractNewRecordState(mode, (OP,)))["c"]
    assert form is not None
    deleted = (Constant("__deleted", "false"),) if mode.startswith("rewrite") else ()
    assert form.fields == (*deleted, OP)


def test_a_record_that_is_no_envelope_stays_as_it_is() -> None:
    unwrap = ExtractNewRecordState(headers=(OP,))
    assert unwrap.apply(NOTICE) == NOTICE
    row = unwrap.apply(change_form("t"))
    assert row is not None
    assert unwrap.apply(row) == row


def test_a_tombstone_has_the_headers_of_its_deletion_and_the_operation_once_more() -> None:
    form = forms_by_operation(ExtractNewRecordState("rewrite-with-tombstone", headers=(TABLE, OP)))["tombstone"]
    assert form is not None
    assert form.headers == (TABLE, OP, Constant("__op", "d"))


def test_rows_and_deletions_go_where_they_say_and_tombstones_do_not() -> None:
    route = Route("unwrap", "lane")
    for mode in MODES:
        by_kind = forms_by_operation(ExtractNewRecordState(mode, route=route))
        routed = {op for op, form in by_kind.items() if form is not None and form.route == route}
        assert routed == ({*"rcu"} if mode == "drop" else {*"rcud"})
    # The row before a deletion says it, so a deletion is written by itself.
    deletion, insertion = by_kind["d"], by_kind["c"]
    assert deletion is not None
    assert insertion is not None
    assert deletion.written.op == "d"
    assert not insertion.written.op


def test_no_transform_stands_behind_one_whose_rows_say_where_they_go() -> None:
    with pytest.raises(ConfigError, match="stands behind unwrap") as error:
        forms_by_operation(ExtractNewRecordState(route=Route("unwrap", "lane")), RegexRouter("a", "b"))
    assert "take route.by.field out" in (error.value.hint or "")


def test_behind_a_router_a_tombstone_has_headers_of_its_own() -> None:
    form = forms_by_operation(
        RegexRouter("p.*", "q"), ExtractNewRecordState("rewrite-with-tombstone", headers=(TABLE, OP))
    )
    assert form["tombstone"] is not None
    assert form["tombstone"].headers == (Constant("__op", "d"),)


def test_predicates_choose_the_records_that_a_transform_is_asked_about() -> None:
    unwrap = ExtractNewRecordState("rewrite-with-tombstone")
    assert values(Step(Drop(), RecordIsTombstone()))["tombstone"] is None
    assert values(Step(Drop(), RecordIsTombstone()))["d"] is Value.ENVELOPE
    # A deletion without value counts as one, whatever schema it has.
    assert values(ExtractNewRecordState(), Step(Drop(), RecordIsTombstone()))["d"] is None
    assert values(Step(unwrap, TopicNameMatches(r"p\.d")))["c"] is Value.ENVELOPE
    assert values(Step(unwrap, TopicNameMatches(r"p\.d"), negate=True))["c"] is Value.ROW
    moved = forms("p.d.t", (Step(Drop(), HasHeaderKey("__debezium.newkey")),), "none")
    assert [kind for kind, form in moved.items() if form is None] == [Kind("d", moved=True), Kind("", moved=True)]
    added = forms("p.d.t", (Step(ExtractNewRecordState(headers=(OP,))), Step(Drop(), HasHeaderKey("__op"))), "none")
    assert not any(added.values())


def test_a_router_by_regex_changes_the_topic_alone() -> None:
    form = RegexRouter(r"(\w)\.(.*)", "$2.$1").apply(change_form("p.d.t"))
    assert form == change_form("p.d.t").__class__(
        "d.t.p", "c", Value.ENVELOPE, "p.d.t.Key", "p.d.t.Value", "p.d.t.Envelope"
    )
    assert RegexRouter("no", "x").apply(NOTICE) == NOTICE


def test_a_logical_table_has_its_names_and_tells_keys_apart() -> None:
    router = ByLogicalTableRouter(r"p\.d_(\d+)\.(.*)", "p.$2", key_regex=r".*_(\d+)\..*", key_replacement="shard $1")
    form = router.apply(change_form("p.d_7.a-b"))
    assert (form.topic, form.key_name, form.row_name) == ("p.a-b", "p.a-b.Key", "p.a-b.Value")
    assert form.envelope_name == "p.a-b.Envelope"
    assert form.key_fields == (Constant("__dbz__physicalTableIdentifier", "shard 7"),)
    adjusted = ByLogicalTableRouter(r"p\.d_(\d+)\.(.*)", "p.$2", key_field="", schema_names="avro")
    assert adjusted.apply(change_form("p.d_7.a-b")).key_name == "p.a_b.Key"
    assert adjusted.apply(change_form("p.d_7.a-b")).key_fields == ()
    assert router.apply(change_form("elsewhere")) == change_form("elsewhere")
    assert ByLogicalTableRouter(".*", "").apply(change_form("t")) == change_form("t")


def test_a_logical_table_leaves_the_names_of_rows_that_are_unwrapped() -> None:
    form = forms_by_operation(ExtractNewRecordState(), ByLogicalTableRouter(".*", "all"))["c"]
    assert form is not None
    assert (form.topic, form.key_name, form.row_name) == ("all", "all.Key", "p.d.t.Value")
    assert form.key_fields == (Constant("__dbz__physicalTableIdentifier", "p.d.t"),)


def test_a_filter_keeps_what_its_condition_is_true_of() -> None:
    kept = values(Filter("f", ("c", "r")))
    assert [op for op, value in kept.items() if value] == ["r", "c", "tombstone"]
    assert values(Filter("f", ("c", "r"), keeps_empty=False))["tombstone"] is None
    assert values(Filter("f", ("c",), topic_regex=r"p\.e\..*"))["u"] is Value.ENVELOPE


@pytest.mark.parametrize("form", [NOTICE, ExtractNewRecordState().apply(change_form("p"))])
def test_a_filter_cannot_be_asked_about_what_has_no_operation(form: Form) -> None:
    with pytest.raises(ConfigError, match=r"transforms\.f\.condition asks for value\.op") as caught:
        passed((Step(Filter("f", ("c",))),), form)
    assert "transforms.f.topic.regex" in caught.value.hint


def test_topics_begin_with_that_of_rows_read_by_select() -> None:
    chain: Chain = (Step(RegexRouter(".*", "gone"), RecordIsTombstone()), Step(RegexRouter(r"p\.(.*)", "$1")))
    assert topics("p.d.t", chain, "none") == ("d.t", "gone")
    assert topics("p.d.t", (Step(Drop()),), "none") == ()
