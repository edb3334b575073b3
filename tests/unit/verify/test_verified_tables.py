"""Tests of the tables of one topic: all of them are compared, or none."""

from __future__ import annotations

from dataclasses import replace

from incsnap.tables import Column, TableId, TableShape
from incsnap.verify.record_reading import RecordForm
from incsnap.verify.table_side import VerifiedTable
from incsnap.verify.verified_tables import ChosenTables, refuse_together

FORM = RecordForm(envelope=True, key_schemas=False, schemas=False)


def table(name: str) -> VerifiedTable:
    shape = TableShape(TableId("d", name), (Column("id", "int"),), (0,))
    return VerifiedTable(shape, "p.all", 1, FORM)


A, B, C = table("a"), table("b"), table("c")
IDS = [each.shape.id for each in (A, B, C)]


def test_tables_of_one_form_are_compared_together() -> None:
    chosen = ChosenTables({"p.all": [A, B, C]})
    refuse_together(chosen, IDS)
    assert (chosen.by_topic, chosen.refused) == ({"p.all": [A, B, C]}, {})


def test_a_table_that_cannot_be_compared_leaves_no_answer_about_the_others() -> None:
    chosen = ChosenTables({"p.all": [A, B]}, {C.shape.id: "It has no primary key."})
    refuse_together(chosen, IDS)
    assert chosen.by_topic == {}
    why = "d.c goes to the same topic, and cannot be compared: It has no primary key."
    assert (chosen.refused[A.shape.id], chosen.refused[B.shape.id]) == (why, why)


def test_tables_of_different_forms_in_one_topic_are_not_compared() -> None:
    other = replace(B, form=replace(FORM, tombstones=False))
    chosen = ChosenTables({"p.all": [A, other]})
    refuse_together(chosen, IDS[:2])
    assert chosen.by_topic == {}
    assert "send records of different forms" in chosen.refused[A.shape.id]
