"""A machine that does not see the job's checkpoint writes nothing to what it takes for it."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from incsnap.checkpoint.first_offset import CheckpointNotShared, require_shared
from incsnap.config.load import from_properties
from incsnap.spark.sink import KafkaWriter, SinkOptions
from tests.support.properties import NEEDED


@pytest.fixture(autouse=True)
def _asked_anew() -> Iterator[None]:
    require_shared.cache_clear()
    yield
    require_shared.cache_clear()


def test_the_machine_is_named_that_does_not_see_it(tmp_path: Path) -> None:
    with pytest.raises(CheckpointNotShared, match=socket.gethostname()):
        require_shared(str(tmp_path))

    # It is mounted by now: what was missed is looked for again.
    (tmp_path / "first-offset.json").write_text("{}")
    require_shared(str(tmp_path))


def test_a_sink_task_on_such_a_machine_fails(tmp_path: Path) -> None:
    settings = from_properties({**NEEDED, "checkpoint.location": str(tmp_path)}).settings
    options = SinkOptions(settings=settings.to_json(), job_id="j", many_machines=True)

    with pytest.raises(CheckpointNotShared, match="→"):
        KafkaWriter(options).write(iter(()))
