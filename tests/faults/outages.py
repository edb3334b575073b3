"""The rows of faults of servers: they are killed, hang, fail over or refuse records."""

from __future__ import annotations

import contextlib
import time

import pymysql
from confluent_kafka.admin import (  # type: ignore[attr-defined]
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ResourceType,
)

from tests.faults.fault_servers import sessions
from tests.faults.kills import Fault
from tests.faults.trial import Trial
from tests.support.replicas import execute

#: Longer than any wait of the job within one step (`kafka.transaction`).
_LONGER_THAN_A_STEP = 33.0
_NOTICED_SECONDS = 240.0


def mysql_killed(trial: Trial, number: int) -> None:
    """Kill mysqld with SIGKILL, and start it on its data within 4 s."""
    trial.reads()
    trial.servers.mysql_server.kill()
    time.sleep(trial.random.uniform(0.0, 4.0))
    trial.servers.mysql_server.start()
    trial.done["mysqld"] += 1


def mysql_sessions(trial: Trial, number: int) -> None:
    """Kill one connection of the job with SQL's KILL: in turn the stream's, the planner's or a reader's."""
    trial.reads()
    dumps = number % 2 == 0
    deadline = time.monotonic() + _NOTICED_SECONDS
    # After a KILL of the turn before, the job connects again when it needs the connection.
    while not (numbers := sessions(trial.servers.mysql, dumps=dumps)):
        trial.keep_reading()
        assert time.monotonic() < deadline, "the job has no such connection"
        time.sleep(0.05)
    # The planner's connection is the oldest; readers' connections come after it.
    number_of = numbers[0] if number % 4 == 1 else trial.random.choice(numbers)
    with contextlib.suppress(pymysql.MySQLError):  # the connection has already ended
        execute(trial.servers.mysql, f"KILL {number_of}")
    trial.done["stream" if dumps else "planner" if number_of == numbers[0] else "reader"] += 1


def failover(trial: Trial, number: int) -> None:
    """Fail over to the replica: read_only, catch up, take over, and lead the address to it. Next time back."""
    trial.reads()
    trial.servers.fail_over()
    trial.done["failover"] += 1


def kafka_killed(trial: Trial, number: int) -> None:
    """Kill the broker with SIGKILL, and start it on its data within 4 s."""
    trial.reads()
    trial.servers.kafka_server.kill()
    time.sleep(trial.random.uniform(0.0, 4.0))
    trial.servers.kafka_server.start()
    trial.done["broker"] += 1


def kafka_slow(longest: float) -> Fault:
    """Return the fault that suspends the broker, for at most `longest` seconds."""

    def fault(trial: Trial, number: int) -> None:
        trial.reads()
        longer = longest > _LONGER_THAN_A_STEP and number % 6 == 5
        trial.servers.kafka_server.suspend()
        try:
            time.sleep(_LONGER_THAN_A_STEP if longer else trial.random.uniform(0.5, min(longest, 8.0)))
        finally:
            trial.servers.kafka_server.go_on()
        trial.done["held 33 s" if longer else "held up to 8 s"] += 1

    fault.__doc__ = "SIGSTOP of the broker, which coordinates the transactions; one time in six for 33 s."
    return fault


def small_messages(trial: Trial, number: int) -> None:
    """Lower a topic's max.message.bytes. The job must end and tell the repair, which is then done."""
    trial.reads()
    _, table = trial.random.choice(trial.play.tables)
    topic = trial.play.topic(table)
    _alter(trial.servers.kafka, topic, "100")
    trial.may_end = True
    deadline = time.monotonic() + _NOTICED_SECONDS
    while trial.job.exit_code() is None:
        trial.keep_reading()
        assert time.monotonic() < deadline, "the job did not notice that its records are refused"
        time.sleep(0.05)
    assert trial.job.exit_code() == 1, trial.job.log_tail()
    assert "and max.message.bytes of the topic" in trial.job.log_tail(), trial.job.log_tail()
    _alter(trial.servers.kafka, topic, None)
    trial.done["refused, told and mended"] += 1


def _alter(bootstrap: str, topic: str, limit: str | None) -> None:
    how = AlterConfigOpType.SET if limit else AlterConfigOpType.DELETE
    entry = ConfigEntry("max.message.bytes", limit, incremental_operation=how)
    asked = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry])
    admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
    for future in admin.incremental_alter_configs([asked], request_timeout=20).values():
        future.result()
