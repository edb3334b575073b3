"""Tests of the settings written down with a plan: equal for the same settings, whichever release wrote them.

`older_choices.json` has what five releases wrote for some settings, by commit. The first is the last release with
offsets of version 3. The next three brought versions 4, 5 and 6. The last one is the last that wrote this form.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from incsnap.checkpoint.planned_batch import PlannedWith
from incsnap.config.load import from_properties
from incsnap.config.settings import Settings
from incsnap.planner.choices import changes_since, older_forms, planned_with

KEPT: Any = json.loads(Path(__file__).with_name("older_choices.json").read_text())
RECORDED = [(release, case) for release, cases in KEPT["releases"].items() for case in cases]


def settings(case: str, **others: str) -> Settings:
    """Return the settings of a case, with `others` added. In the names of `others` each _ stands for a dot."""
    more = {name.replace("_", "."): value for name, value in others.items()}
    return from_properties({**KEPT["settings"][case], **more}, {}).settings


@pytest.mark.parametrize(("release", "case"), RECORDED)
def test_settings_that_did_not_change_are_the_same_to_a_newer_release(release: str, case: str) -> None:
    assert changes_since(PlannedWith("", KEPT["releases"][release][case]), settings(case)) == ""


@pytest.mark.parametrize(("release", "case"), RECORDED)
@pytest.mark.parametrize(
    ("property_name", "others"),
    [
        ("topic.delimiter", {"topic_delimiter": "-"}),
        ("include and exclude lists", {"table_include_list": "shop\\.other"}),
        ("message.key.columns", {"message_key_columns": "shop.other:a"}),
        ("key.converter", {"key_converter": "JsonConverter", "key_converter_decimal_format": "numeric"}),
        ("handling modes", {"decimal_handling_mode": "double"}),
    ],
)
def test_settings_that_changed_are_named(release: str, case: str, property_name: str, others: dict[str, str]) -> None:
    if case == "avro" and property_name == "key.converter":
        others = {"key_converter": "JsonConverter"}
    assert property_name in changes_since(PlannedWith("", KEPT["releases"][release][case]), settings(case, **others))


@pytest.mark.parametrize("case", KEPT["settings"])
def test_this_release_goes_on_with_what_it_has_planned(case: str) -> None:
    assert changes_since(planned_with(settings(case)), settings(case)) == ""
    other = settings(case, decimal_handling_mode="double")
    assert "handling modes" in changes_since(planned_with(settings(case)), other)


def test_missing_fields_of_an_older_release_get_their_defaults() -> None:
    written = planned_with(settings("plain"))
    older = replace(written, release="0.0.9", values={"topic.prefix": "p"})
    newer = replace(written, release="9.9", values={**written.values, "setting.of.the.future": ""})
    assert changes_since(older, settings("plain")) == ""
    assert changes_since(newer, settings("plain")) == ""
    changed = replace(newer, values={**newer.values, "setting.of.the.future": "on"})
    assert changes_since(changed, settings("plain")) == "setting.of.the.future (was on, is none)"


def test_a_value_that_no_older_release_knew_has_no_older_form() -> None:
    outbox = settings("outbox", transforms_outbox_table_expand_json_payload="true")
    without = [release for release in ("64a108f", "568dff9") if "outbox" in KEPT["releases"][release]]
    for release in without:
        assert "transforms" in changes_since(PlannedWith("", KEPT["releases"][release]["outbox"]), outbox)
    assert older_forms(outbox)["transforms, predicates"]


def test_secrets_are_written_as_digests() -> None:
    assert "pepper" not in str(planned_with(settings("tables")))
