"""The servers for faults. They are always new ones, and each row may kill and restart them."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from incsnap.checkpoint.object_store import set_access
from incsnap.config.object_store import store_access
from lab.addresses import MySqlAddress
from lab.breakable import Breakable
from lab.fetched_kafka import breakable_kafka
from lab.fetched_mysql import breakable_mysql
from lab.object_store import ObjectStore, object_store
from lab.spark_cluster import SparkCluster, spark_cluster
from tests.faults.switch import Switch
from tests.support.replicas import begin_binlog_anew, execute, follow

#: Seconds for a replica to catch up: tens of thousands of small transactions when the row begins.
_CATCH_UP_SECONDS = 600.0


class FaultServers:
    """The servers of all rows. Use `fault_servers`.

    `mysql` is the address for clients. Once there is a replica, it is the switch's address.
    """

    def __init__(self, stack: ExitStack) -> None:
        self._stack = stack
        self.source, first = stack.enter_context(breakable_mysql(["--server-id=91"]))
        self._servers = {self.source: first}
        self.kafka, self.kafka_server = stack.enter_context(breakable_kafka())
        self.mysql = self.source
        self.replica: MySqlAddress | None = None
        self._switch: Switch | None = None
        self._spark: SparkCluster | None = None
        self._store: ObjectStore | None = None

    def spark(self) -> SparkCluster:
        """Return a Spark cluster of two machines. The first row that asks starts it."""
        if self._spark is None:
            self._spark = self._stack.enter_context(spark_cluster())
        return self._spark

    def object_store(self) -> ObjectStore:
        """Return an S3 server with one bucket, which this process can read too. The first row that asks starts it."""
        if self._store is None:
            store = self._store = self._stack.enter_context(object_store())
            settings = store.properties("")
            set_access(settings["checkpoint.location"], store_access(settings["checkpoint.location"], settings, {}))
        return self._store

    @property
    def switch(self) -> Switch:
        assert self._switch is not None
        return self._switch

    @property
    def mysql_server(self) -> Breakable:
        """Return the server that takes the writes now."""
        return self._servers[self.source]

    def replicate(self) -> None:
        """Start a replica with all data of the first server, unless there is one already."""
        if self.replica is not None:
            return
        self.replica, second = self._stack.enter_context(breakable_mysql(["--server-id=92"]))
        self._servers[self.replica] = second
        self._switch = self._stack.enter_context(Switch(self.source))
        self.mysql = self._switch.address
        begin_binlog_anew(self.replica)
        self._follow(self.replica, self.source)
        # The replica catches up with all earlier rows now, so that the first failover does not have to wait for it.
        self._caught_up()

    def fail_over(self) -> None:
        """Hand over to the replica as planned: stop the writes, let the replica catch up, and let it take over.

        Next time back.
        """
        assert self.replica is not None
        old, new = self.source, self.replica
        execute(old, "SET GLOBAL super_read_only = ON")
        self.switch.to(None)
        try:
            self._caught_up()
        except BaseException:
            # Give the server back to the rows that follow.
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
        """Wait until the replica has executed all transactions of the source."""
        assert self.replica is not None
        [(executed,)] = execute(self.source, "SELECT @@GLOBAL.gtid_executed")
        deadline = time.monotonic() + _CATCH_UP_SECONDS
        missing: object = 1
        while missing:
            # The client gives up after a minute, so ask in steps of 5 s.
            [(missing,)] = execute(self.replica, f"SELECT WAIT_FOR_EXECUTED_GTID_SET('{executed}', 5)")
            assert time.monotonic() < deadline, f"the replica did not catch up in {_CATCH_UP_SECONDS:.0f} s"

    def _follow(self, replica: MySqlAddress, source: MySqlAddress) -> None:
        follow(replica, source)
        execute(replica, "SET GLOBAL super_read_only = ON")


@contextmanager
def fault_servers() -> Iterator[FaultServers]:
    """Run the servers until the block ends."""
    with ExitStack() as stack:
        yield FaultServers(stack)


def sessions(address: MySqlAddress, *, dumps: bool) -> list[int]:
    """Return the ids of incsnap's connections (`program_name`): the ones that read the binlog, or the others."""
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
