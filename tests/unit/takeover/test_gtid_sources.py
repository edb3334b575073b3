"""The transactions that a connector does not send count as sent."""

from __future__ import annotations

import pytest

from incsnap.gtid import GtidSet
from incsnap.takeover.gtid_sources import GtidSources

_A, _B, _C = (f"3e11fa47-71ca-11e1-9e33-c80aa942956{number}" for number in range(3))


@pytest.mark.parametrize(
    ("settings", "done"),
    [
        ({}, f"{_A}:1-5"),
        ({"gtid.source.includes": _A.upper()}, f"{_A}:1-5,{_B}:1-7"),
        ({"gtid.source.includes": ".*0, .*1"}, f"{_A}:1-5"),
        ({"gtid.source.excludes": ".*1"}, f"{_A}:1-5,{_B}:1-7"),
    ],
    ids=["all", "one", "both", "all but one"],
)
def test_transactions_of_other_servers_count_as_sent(settings: dict[str, str], done: str) -> None:
    sent, executed = GtidSet.parse(f"{_A}:1-5"), GtidSet.parse(f"{_A}:1-9,{_B}:1-7")

    assert GtidSources.of(settings).completed(sent, executed, GtidSet()) == GtidSet.parse(done)


def test_purged_transactions_of_a_server_that_the_offset_does_not_know_count_as_sent() -> None:
    sent, purged = GtidSet.parse(f"{_A}:3-5"), GtidSet.parse(f"{_A}:1-2,{_C}:1-4")

    assert GtidSources().completed(sent, purged | sent, purged) == GtidSet.parse(f"{_A}:3-5,{_C}:1-4")
