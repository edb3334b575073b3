"""Connections to the MySQL servers of the lab and the tests. Every wait has a limit."""

from __future__ import annotations

from typing import Any

from pymysql.connections import Connection

from incsnap.mysql.driver_internals import LightConnection
from lab.addresses import MySqlAddress


def connect(
    address: MySqlAddress, *, connect_timeout: int = 10, read_timeout: float = 120.0, **options: Any
) -> Connection[Any]:
    """Return a session with utf8mb4 and autocommit.

    `connect_timeout` is in seconds. `read_timeout` is how many seconds one statement may take, also for sending it.
    `options` are further arguments of PyMySQL's `Connection`.
    """
    return LightConnection(
        host=address.host,
        port=address.port,
        user=address.user,
        password=address.password,
        connect_timeout=connect_timeout,
        read_timeout=read_timeout,
        write_timeout=read_timeout,
        **{"charset": "utf8mb4", "autocommit": True, **options},
    )
