"""A take-over is written into a new checkpoint only."""

from __future__ import annotations

from pathlib import Path

import pytest

from incsnap.checkpoint.first_offset import first_offset
from incsnap.checkpoint.location import own_part
from incsnap.checkpoint.taken_over import TakenOver
from incsnap.envelope.seam import RecordPlace, Seam
from incsnap.errors import ConfigError
from incsnap.events import StreamPosition
from incsnap.gtid import GtidSet
from incsnap.snapshot.offset import Offset, TopicLayout
from incsnap.takeover.join import Joined, require_new_checkpoint, write
from tests.support.job_settings import loaded_with


def test_the_checkpoint_of_a_job_that_has_begun_is_refused(tmp_path: Path) -> None:
    settings = loaded_with(checkpoint__location=str(tmp_path)).settings
    require_new_checkpoint(settings)
    # A take-over before the job's first start may be written again.
    write(settings, Joined(TakenOver("shop", "", Seam("uuid", RecordPlace(1, 4))), ()))
    require_new_checkpoint(settings)

    offset = Offset("job", 0, StreamPosition(GtidSet(), "", 0), TopicLayout(1))
    first_offset(own_part(str(tmp_path)), lambda: offset)

    with pytest.raises(ConfigError, match=f"{tmp_path} is the checkpoint of a job that has begun") as refused:
        require_new_checkpoint(settings)
    assert "new checkpoint.location" in refused.value.hint
