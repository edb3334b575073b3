"""The servers that faults are done to: always of their own, killed and started again as a row wants it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from lab.addresses import MySqlAddress
from lab.breakable import Breakable
from lab.fetched_kafka import breakable_kafka
from lab.fetched_mysql import breakable_mysql
from lab.spark_cluster import SparkCluster, spark_cluster
from tests.faults.switch import Switch
from tests.support.replicas import begin_binlog_anew, execute, follow

#: For a replica to execute what its source has: tens of thousands of small transactions when the row begins.
_CATCH_UP_SECONDS = 600.0


class Ground:
    """Use ``ground``. ``mysql`` is where clients go: the switch, as soon as there is a replica."""

    def __init__(self, stack: ExitStack) -> None:
        self._stack = stack
        self.source, first = stack.enter_context(breakable_mysql(["--server-id=91"]))
        self._servers = {self.source: first}
        self.kafka, self.kafka_server = stack.enter_context(breakable_kafka())
        self.mysql = self.source
        self.replica: MySqlAddress | None = None
        self._switch: Switch | None = None
        self._spark: SparkCluster | None = None

    def spark(self) -> SparkCluster:
        """Two machines for executors; started when the first row asks."""
        if self._spark is None:
            self._spark = self._stack.enter_context(spark_cluster())
        return self._spark

    @property
    def switch(self) -> Switch:
        assert self._switch is not None
        return self._switch

    @property
    def mysql_server(self) -> Breakable:
        """The one that takes the writes now."""
        return self._servers[self.source]

    def replicate(self) -> None:
        """Once: a second server, which has all that the first has and will have."""
        if self.replica is not None:
            return
        self.replica, second = self._stack.enter_context(breakable_mysql(["--server-id=92"]))
        self._servers[self.replica] = second
        self._switch = self._stack.enter_context(Switch(self.source))
        self.mysql = self._switch.address
        begin_binlog_anew(self.replica)
        self._follow(self.replica, self.source)
        # All that the rows before have written: it is not the first failover that has to wait for it.
        self._caught_up()

    def fail_over(self) -> None:
        """Planned: the source takes no more writes, the replica has all and takes its place; and back the next time."""
        assert self.replica is not None
        old, new = self.source, self.replica
        execute(old, "SET GLOBAL super_read_only = ON")
        self.switch.to(None)
        try:
            self._caught_up()
        except BaseException:
            # The rows that follow have their server.
            execute(old, "SET GLOBAL super_read_only = OFF", "SET GLOBAL read_only = OFF")
            self.switch.to(old)
            raise
        execute(
            new, "STOP REPLICA", "RESET REPLICA ALL", "SET GLOBAL super_read_only = OFF", "SET GLOBAL read_only = OFF"
        )
        self.source, self.replica = new, old
        self._follow(old, new)
        self.switch.to(new)

    def _caught_up(self) -> None:
        """The replica has executed all that the source has."""
        assert self.replica is not None
        [(executed,)] = execute(self.source, "SELECT @@GLOBAL.gtid_executed")
        deadline = time.monotonic() + _CATCH_UP_SECONDS
        missing: object = 1
        while missing:
            # The client gives up a question of a minute.
            [(missing,)] = execute(self.replica, f"SELECT WAIT_FOR_EXECUTED_GTID_SET('{executed}', 5)")
            assert time.monotonic() < deadline, f"the replica did not catch up in {_CATCH_UP_SECONDS:.0f} s"

    def _follow(self, replica: MySqlAddress, source: MySqlAddress) -> None:
        follow(replica, source)
        execute(replica, "SET GLOBAL super_read_only = ON")


@contextmanager
def ground() -> Iterator[Ground]:
    with ExitStack() as stack:
        yield Ground(stack)


def sessions(address: MySqlAddress, *, dumps: bool) -> list[int]:
    """Connections of clients that call themselves incsnap (``program_name``), the stream's or the others."""
    verb = "LIKE" if dumps else "NOT LIKE"
    return [
        int(str(number))
        for (number,) in execute(
            address,
            "SELECT t.PROCESSLIST_ID FROM performance_schema.threads t"
            " JOIN performance_schema.session_connect_attrs a ON a.PROCESSLIST_ID = t.PROCESSLIST_ID"
            " WHERE a.ATTR_NAME = 'program_name' AND a.ATTR_VALUE = 'incsnap'"
            f" AND t.PROCESSLIST_COMMAND {verb} 'Binlog Dump%'",
        )
    ]
