"""Connections to the servers of the lab and of the tests. None of them waits for ever."""

from __future__ import annotations

from typing import Any

import pymysql
from pymysql.connections import Connection

from lab.addresses import MySqlAddress


def connect(
    address: MySqlAddress, *, connect_timeout: int = 10, read_timeout: float = 120.0, **options: Any
) -> Connection[Any]:
    """A session in utf8mb4 that commits each statement.

    :param connect_timeout: seconds.
    :param read_timeout: seconds that one statement may keep us waiting, also for taking what we send.
    :param options: further arguments of ``pymysql.connect``.
    """
    return pymysql.connect(
        host=address.host,
        port=address.port,
        user=address.user,
        password=address.password,
        connect_timeout=connect_timeout,
        read_timeout=read_timeout,
        write_timeout=read_timeout,
        **{"charset": "utf8mb4", "autocommit": True, **options},
    )
