"""The options that a DataFrame of changes refuses before it asks a server."""

from __future__ import annotations

from typing import Any

import pytest

from incsnap.config.load import from_properties
from incsnap.errors import ConfigError
from incsnap.planner import key_ranges
from incsnap.snapshot.questions import Answer, Failed, KeyOrder, MaximumKey, NextBoundary, Question
from incsnap.spark.frames import ChangesFrame
from incsnap.tables import TableId
from tests.support.properties import NEEDED

OPTIONS = {"database.hostname": "nowhere", "database.user": "u", "topic.prefix": "p", "checkpoint.location": "/nowhere"}


@pytest.mark.parametrize(
    ("mode", "instead"),
    [
        ("initial_only", "availableNow"),
        ("when_needed", "begin again"),
        ("when_needed_no_data", "begin again"),
        ("always", "execute-snapshot"),
    ],
)
def test_settings_of_a_jobs_start_are_refused_for_a_stream(mode: str, instead: str) -> None:
    frame = ChangesFrame({**OPTIONS, "snapshot.mode": mode})

    with pytest.raises(ConfigError, match=f"snapshot.mode={mode}: .* initial or no_data") as refused:
        frame.streamReader(frame.schema())
    assert instead in refused.value.hint


@pytest.mark.parametrize("mode", ["initial", "no_data"])
def test_a_stream_begins_with_all_rows_or_with_none(mode: str) -> None:
    frame = ChangesFrame({**OPTIONS, "snapshot.mode": mode})

    frame.streamReader(frame.schema())


def test_options_that_mean_nothing_are_warned_of(caplog: pytest.LogCaptureFixture) -> None:
    ChangesFrame({**OPTIONS, "tabel": "d.t", "snapshot.mod": "no_data"}).schema()

    (warned,) = [message for message in caplog.messages if "tabel" in message]
    assert "snapshot.mod" in warned


@pytest.mark.parametrize("unanswered", [MaximumKey, NextBoundary])
def test_a_question_about_ranges_that_fails_is_an_error(
    unanswered: type[Question], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A table without a known last key would otherwise be read as one range, against the user's wish."""

    def answers(question: Question) -> Answer:
        if isinstance(question, unanswered):
            return Failed("the server ran out of time")
        return ("9",) if isinstance(question, MaximumKey) else KeyOrder(("id",), "PRIMARY")

    monkeypatch.setattr(key_ranges, "Answers", lambda connection, rules: answers)
    monkeypatch.setattr(key_ranges, "query", lambda connection, statement: ((9,),))
    connection: Any = None

    with pytest.raises(ConfigError, match=r"d\.t cannot be read in several partitions: the server ran out of time"):
        key_ranges.ranges_of(connection, from_properties(NEEDED).settings, TableId("d", "t"), 3)
