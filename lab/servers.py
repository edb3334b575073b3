"""Servers for the demo and the tests: yours, or Docker's, or fetched ones.

1. `INCSNAP_MYSQL` and `INCSNAP_KAFKA` name running servers (`addresses.py`). They are used as they are, and never
stopped.

2. If a Docker engine answers, it runs the servers (`containers.py`).

3. Otherwise packages are fetched once into the user's cache, and run on free loopback ports (`fetched_mysql.py`,
`fetched_kafka.py`, `cache.py`).

Servers that were started are stopped when the block ends, also on errors and Ctrl-C. If this process is killed, the
kernel stops them (`child_programs`). Their data are removed.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass

from lab import containers
from lab.addresses import MySqlAddress, kafka_of, mysql_of
from lab.fetched_kafka import fetched_kafka
from lab.fetched_mysql import fetched_mysql
from lab.progress import tell


@dataclass(frozen=True, slots=True)
class Servers:
    """The addresses of the requested servers. A server that was not requested has an empty address."""

    mysql: MySqlAddress  #: an empty host if it was not requested
    kafka: str  #: `host:port`, or several with commas


@contextlib.contextmanager
def servers(
    *, mysql: bool = True, kafka: bool = True, mysql_options: Sequence[str] = (), lasting: bool = False
) -> Iterator[Servers]:
    """Provide running servers until the block ends.

    `lasting` is for a benchmark: see `fetched_kafka`. `mysql_options` are further mysqld options. With options the
    server is always a new one, because a server of the environment belongs to somebody and keeps its options. Raise
    IncsnapError if a server can neither be found nor started; its hint says what to install or set.
    """
    with ExitStack() as stack:
        yield Servers(
            _mysql(stack, mysql_options) if mysql else MySqlAddress("", 0),
            _kafka(stack, lasting=lasting) if kafka else "",
        )


def _mysql(stack: ExitStack, options: Sequence[str]) -> MySqlAddress:
    if not options and (address := mysql_of(os.environ)):
        return address
    if containers.engine_answers():
        try:
            return stack.enter_context(containers.contained_mysql(options))
        except Exception as error:  # noqa: BLE001 - an engine without a registry fails in many ways; there is a third way
            tell(f"Docker cannot run MySQL, fetching it instead: {error}")
    return stack.enter_context(fetched_mysql(options))


def _kafka(stack: ExitStack, *, lasting: bool) -> str:
    if address := kafka_of(os.environ):
        return address
    if containers.engine_answers():
        try:
            return stack.enter_context(containers.contained_kafka())
        except Exception as error:  # noqa: BLE001 - see above
            tell(f"Docker cannot run Kafka, fetching it instead: {error}")
    return stack.enter_context(fetched_kafka(lasting=lasting))
