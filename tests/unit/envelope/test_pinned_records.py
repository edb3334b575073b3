"""A window in flight that an older release has read is sent by this one only if its records would be the same.

`test_same_bytes` shows that binlog images give the same canonical columns as the texts here.
"""

from __future__ import annotations

import numpy as np
import pytest

from incsnap.config.record_form import RECORD_FORM
from incsnap.envelope import row_changes, snapshot_records, table_format
from incsnap.types import column_type
from incsnap.types.column_type import describe
from incsnap.types.json import documents
from incsnap.types.modes import Modes
from incsnap.types.spatial import GEOMETRIES
from incsnap.types.text import utf8_text
from tests.support import pinned_records


def test_what_shapes_records_changes_only_with_their_form_s_number() -> None:
    pinned, other = pinned_records.pinned(), pinned_records.changed()
    assert not other or pinned["form"] != RECORD_FORM, (
        f"The records of these parts are no longer those of form {RECORD_FORM}: {', '.join(other)}. If that is meant,"
        " raise RECORD_FORM in incsnap/config/record_form.py, so that windows in flight are read again after the"
        " upgrade, and run `python -m tests.support.pinned_records`. If not, windows that an older release has read"
        " would be sent in the old form, and events would not find their rows."
    )
    assert (pinned["form"], pinned["parts"].keys()) == (RECORD_FORM, pinned_records.parts().keys()), (
        "RECORD_FORM was raised, or a part was added: run `python -m tests.support.pinned_records`."
    )


def test_every_type_is_pinned() -> None:
    pinned = {name.split()[1] for name in pinned_records.pinned()["parts"] if name.startswith("type ")}
    assert pinned == column_type._TYPES.keys() - (set(GEOMETRIES) - {"geometry", "point"})


def test_another_text_of_a_type_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(documents, "_from_text", utf8_text)
    describe.cache_clear()
    assert pinned_records.changed() == ["type json c"]
    describe.cache_clear()


def test_another_partition_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (row_changes, snapshot_records, table_format):
        monkeypatch.setattr(module, "partition", lambda keys, _count: np.zeros(len(keys), np.int32))
    assert {name.split(",")[0] for name in pinned_records.changed()} == {"rows", "changes"}


def test_another_identity_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table_format, "EXACT", Modes())
    assert {name.split(",")[0] for name in pinned_records.changed()} == {"rows", "changes"}
