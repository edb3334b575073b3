"""A machine that does not see the job's checkpoint writes nothing to what it takes for it."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from incsnap.checkpoint.first_offset import CheckpointNotShared, require_shared
from incsnap.spark.sink import KafkaWriter, SinkOptions


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
    options = SinkOptions(
        bootstrap_servers="127.0.0.1:1", prefix="p", job_id="j", buffer_root=str(tmp_path), many_machines=True
    )

    with pytest.raises(CheckpointNotShared, match="→"):
        KafkaWriter(options).write(iter(()))
