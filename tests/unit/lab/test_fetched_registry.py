"""A test of the schema registry that the lab provides."""

from __future__ import annotations

import pytest

from lab.fetched_registry import registry


def test_a_registry_that_the_environment_names_is_used_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("INCSNAP_REGISTRY", " http://registry:8081 ")

    with registry() as url:
        assert url == "http://registry:8081"
