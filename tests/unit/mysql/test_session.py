"""A test of the errors if a session cannot be opened."""

from __future__ import annotations

from typing import Any

import pymysql
import pytest

from incsnap.errors import ServerUnreachable
from incsnap.mysql.session import connect
from lab.addresses import MySqlAddress
from tests.support.planned_job import settings_of


@pytest.mark.parametrize(
    ("code", "text", "message"),
    [
        (1193, "Unknown system variable 'transaction_isolation'", "is not MySQL 8.0 or later"),
        (1231, "Variable 'optimizer_switch' can't be set to the value of 'use'", "is not MySQL 8.0 or later"),
        (1045, "Access denied", "refuses the user 'u'"),
        (2003, "Can't connect", "does not answer"),
    ],
)
def test_a_refused_session_is_told_by_its_cause(
    code: int, text: str, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(**arguments: Any) -> None:
        raise pymysql.err.OperationalError(code, text)

    monkeypatch.setattr("incsnap.mysql.session.LightConnection", refuse)
    settings = settings_of(MySqlAddress("h", 1, "u", ""), "unused:1", "p", "shop")
    with pytest.raises(ServerUnreachable) as caught:
        connect(settings.mysql)
    assert message in caught.value.message
    assert text in caught.value.message
