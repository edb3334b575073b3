"""What a DataFrame of changes refuses before any server is asked."""

from __future__ import annotations

import pytest

from incsnap.errors import ConfigError
from incsnap.spark.frames import ChangesFrame

OPTIONS = {"database.hostname": "nowhere", "database.user": "u", "topic.prefix": "p", "checkpoint.location": "/nowhere"}


@pytest.mark.parametrize(
    ("mode", "instead"),
    [("initial_only", "availableNow"), ("when_needed", "begin anew"), ("always", "execute-snapshot")],
)
def test_what_only_a_job_does_at_its_start_is_refused_for_a_stream(mode: str, instead: str) -> None:
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
