"""The warning about rows of an XA ROLLBACK that a connector may have sent at XA PREPARE."""

from __future__ import annotations

import pytest

from incsnap.binlog.xa_parts import XaMark, XaTransaction
from incsnap.envelope.seam import RecordPlace, Seam
from incsnap.planner.rolled_back_xa import warn_of_sent_rows

_SEAM = Seam("uuid", RecordPlace(7, 4))


@pytest.mark.parametrize("file", ["binlog.000006", "binlog.000007", ""], ids=["before", "at the seam", "not found"])
def test_a_rollback_of_rows_that_were_prepared_before_the_seam_is_named(
    caplog: pytest.LogCaptureFixture, file: str
) -> None:
    warn_of_sent_rows([XaMark(XaTransaction("X'61',X'',1", "u:5", file), False, True)], _SEAM)

    (warning,) = caplog.messages
    assert warning.startswith("The XA transaction X'61',X'',1, prepared as u:5, is rolled back.")


@pytest.mark.parametrize(
    ("file", "prepared", "rolled_back", "seam"),
    [
        ("binlog.000008", False, True, _SEAM),
        ("binlog.000006", False, True, None),
        ("binlog.000006", False, False, _SEAM),
        ("binlog.000006", True, False, _SEAM),
    ],
    ids=["prepared behind the seam", "no take-over", "XA COMMIT", "XA PREPARE"],
)
def test_rows_that_no_connector_has_sent_and_rows_that_are_committed_get_no_warning(
    caplog: pytest.LogCaptureFixture, file: str, prepared: bool, rolled_back: bool, seam: Seam | None
) -> None:
    warn_of_sent_rows([XaMark(XaTransaction("X'61',X'',1", "u:5", file), prepared, rolled_back)], seam)

    assert not caplog.messages
