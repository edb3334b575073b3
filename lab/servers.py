"""Servers for the demo and the tests: yours, else Docker's, else fetched.

1. ``INCSNAP_MYSQL`` and ``INCSNAP_KAFKA`` name servers that run (``addresses.py``): used as they are, never stopped.
2. A Docker engine that answers (``containers.py``).
3. Packages fetched once into the user's cache and started on free loopback ports (``fetched_mysql.py``,
   ``fetched_kafka.py``, ``cache.py``).

Whatever was started is stopped when the block ends, on errors and Ctrl-C too, and by the kernel when this process is
killed (``child_programs``); its data are removed.
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
    """Addresses of what was asked for. A server that was not asked for has an empty address."""

    mysql: MySqlAddress
    kafka: str


@contextlib.contextmanager
def servers(
    *, mysql: bool = True, kafka: bool = True, mysql_options: Sequence[str] = (), lasting: bool = False
) -> Iterator[Servers]:
    """Running servers for the time of the block.

    :param lasting: for a benchmark, see ``fetched_kafka``.
    :param mysql_options: further mysqld options. A server with options is always one of its own: what the environment
        names belongs to somebody and cannot be given any.
    :raises IncsnapError: a server can neither be found nor started; the hint says what to install or to set.
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
