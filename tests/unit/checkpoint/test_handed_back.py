"""A checkpoint that was handed back to a connector does not run again."""

from __future__ import annotations

from pathlib import Path

import pytest

from incsnap.checkpoint.files import Files
from incsnap.checkpoint.handed_back import mark_handed_back, refuse_handed_back
from incsnap.checkpoint.location import own_part
from incsnap.checkpoint.own_starts import own_checkpoint
from incsnap.errors import ConfigError
from tests.support.job_settings import loaded_with


def test_a_start_is_refused_from_the_first_mark_on(tmp_path: Path) -> None:
    settings = loaded_with(checkpoint__location=str(tmp_path)).settings
    files = Files(own_part(settings.checkpoint_location))
    assert own_checkpoint(settings).job == ""

    for done in (False, True):
        mark_handed_back(files, "inventory", done=done)

        with pytest.raises(ConfigError, match="handed back to the connector inventory") as caught:
            own_checkpoint(settings)
        assert "incsnap takeover" in caught.value.hint


def test_a_hand_back_that_was_refused_shows_both_ways_out(tmp_path: Path) -> None:
    files = Files(str(tmp_path))
    mark_handed_back(files, "inventory", done=False)

    with pytest.raises(ConfigError, match="may have been handed back") as caught:
        refuse_handed_back(files)

    assert "Run `incsnap hand-back` again" in caught.value.hint
    assert f"delete {files.path('handed-back.json')}" in caught.value.hint


def test_a_hand_back_that_was_cut_short_is_done_again(tmp_path: Path) -> None:
    files = Files(str(tmp_path))
    refuse_handed_back(files, also_begun=False)
    mark_handed_back(files, "inventory", done=False)
    refuse_handed_back(files, also_begun=False)
    mark_handed_back(files, "inventory", done=True)

    with pytest.raises(ConfigError) as caught:
        refuse_handed_back(files, also_begun=False)

    # The offset may have gone into a wrong file.
    assert f"delete {files.path('handed-back.json')}, and run `incsnap hand-back` again" in caught.value.hint
