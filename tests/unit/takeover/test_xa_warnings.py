"""What a take-over says about XA transactions that are prepared, or that its user may not see."""

from __future__ import annotations

from unittest.mock import Mock, patch

import pytest

from incsnap.takeover import xa_warnings as module
from incsnap.takeover.xa_warnings import xa_warnings


def warnings_with(xids: tuple[str, ...] | None) -> list[str]:
    """Return the warnings if XA RECOVER lists `xids`; None if the server refuses it."""
    with (
        patch.object(module, "prepared_xids", return_value=xids),
        patch.object(module, "account", return_value="'cdc'@'%'"),
    ):
        return xa_warnings(Mock())


def test_a_user_who_may_not_see_prepared_transactions_is_named_with_the_grant() -> None:
    (warning,) = warnings_with(None)

    assert warning.startswith("'cdc'@'%' lacks the privilege XA_RECOVER_ADMIN")
    assert "may come twice" in warning
    assert "GRANT XA_RECOVER_ADMIN ON *.* TO 'cdc'@'%';" in warning


@pytest.mark.parametrize(
    ("xids", "named"), [((), []), (("X'61',X'',1", "X'62',X'',1"), ["X'61',X'',1, X'62',X'',1"])], ids=["none", "two"]
)
def test_only_transactions_that_are_prepared_are_named(xids: tuple[str, ...], named: list[str]) -> None:
    warnings = warnings_with(xids)

    assert [each.partition(": ")[2].partition(". ")[0] for each in warnings] == named
