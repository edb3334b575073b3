"""A take-over that waits for the end of a connector: what counts as its end."""

from __future__ import annotations

from threading import Event
from unittest.mock import patch

import pytest

from incsnap.cli.takeover import _await_end, _Running
from incsnap.config.settings import Settings
from incsnap.takeover import connector_state
from tests.support.connect_rest import connect_rest
from tests.support.job_settings import loaded_with


@pytest.fixture
def settings() -> Settings:
    return loaded_with(topic__prefix="shop").settings


@pytest.mark.parametrize("is_given", [True, False], ids=["--rest", "the worker's file"])
def test_an_error_of_rest_is_no_end_and_rest_is_asked_again(settings: Settings, is_given: bool) -> None:
    with connect_rest([503, ["RUNNING", "RUNNING"], 500, ["STOPPED"]]) as (address, asked):
        seen = _Running("it runs", by_connect=True, rest=address)
        _await_end(settings, address if is_given else None, {"listeners": address}, "shop", Event(), seen)

    assert len(asked) == 4


def test_topics_are_watched_if_no_worker_listens_any_more(settings: Settings) -> None:
    with connect_rest([404]) as (address, _):
        pass
    with (
        patch.object(connector_state, "arriving_records", side_effect=["records arrive", ""]) as watched,
        patch("incsnap.mysql.session.connect"),
        patch("incsnap.mysql.catalog.tables", return_value=()),
    ):
        _await_end(settings, address, {}, "shop", Event(), _Running("it runs", by_connect=True, rest=address))

    assert watched.call_count == 2
