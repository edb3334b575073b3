"""Rows of servers that die, hang, hand over or refuse."""

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

from tests.faults.ground import sessions
from tests.faults.kills import Fault
from tests.faults.trial import Trial
from tests.support.replicas import execute

#: Longer than anything the job waits for within a step (``kafka.transaction``).
_LONGER_THAN_A_STEP = 33.0
_NOTICED_SECONDS = 240.0


def mysql_killed(trial: Trial, number: int) -> None:
    """``kill -9`` of mysqld, down for up to 4 s, started on the same data."""
    trial.reads()
    trial.ground.mysql_server.kill()
    time.sleep(trial.random.uniform(0.0, 4.0))
    trial.ground.mysql_server.start()
    trial.done["mysqld"] += 1


def mysql_sessions(trial: Trial, number: int) -> None:
    """KILL of one connection of the job: the stream's, or the planner's and the readers' in turn."""
    trial.reads()
    dumps = number % 2 == 0
    numbers = sessions(trial.ground.mysql, dumps=dumps)
    assert numbers, "the job has no such connection"
    # The planner's is the oldest, those of readers come after it.
    number_of = numbers[0] if number % 4 == 1 else trial.random.choice(numbers)
    with contextlib.suppress(pymysql.MySQLError):  # it has ended by itself
        execute(trial.ground.mysql, f"KILL {number_of}")
    trial.done["stream" if dumps else "planner" if number_of == numbers[0] else "reader"] += 1


def failover(trial: Trial, number: int) -> None:
    """read_only, the replica catches up and takes over, the address leads to it; and back the next time."""
    trial.reads()
    trial.ground.fail_over()
    trial.done["failover"] += 1


def kafka_killed(trial: Trial, number: int) -> None:
    """``kill -9`` of the broker, down for up to 4 s, started on the same data."""
    trial.reads()
    trial.ground.kafka_server.kill()
    time.sleep(trial.random.uniform(0.0, 4.0))
    trial.ground.kafka_server.start()
    trial.done["broker"] += 1


def kafka_slow(longest: float) -> Fault:
    def fault(trial: Trial, number: int) -> None:
        trial.reads()
        longer = longest > _LONGER_THAN_A_STEP and number % 6 == 5
        trial.ground.kafka_server.suspend()
        try:
            time.sleep(_LONGER_THAN_A_STEP if longer else trial.random.uniform(0.5, min(longest, 8.0)))
        finally:
            trial.ground.kafka_server.go_on()
        trial.done["held 33 s" if longer else "held up to 8 s"] += 1

    fault.__doc__ = "SIGSTOP of the broker, which coordinates the transactions; one time in six for 33 s."
    return fault


def small_messages(trial: Trial, number: int) -> None:
    """A topic's max.message.bytes is lowered: the job ends, and says what to do; then that is done."""
    trial.reads()
    _, table = trial.random.choice(trial.play.tables)
    topic = trial.play.topic(table)
    _alter(trial.ground.kafka, topic, "100")
    trial.may_end = True
    deadline = time.monotonic() + _NOTICED_SECONDS
    while trial.job.exit_code() is None:
        trial.keep_reading()
        assert time.monotonic() < deadline, "the job did not notice that its records are refused"
        time.sleep(0.05)
    assert trial.job.exit_code() == 1, trial.job.log_tail()
    assert "Raise max.message.bytes of the topic" in trial.job.log_tail(), trial.job.log_tail()
    _alter(trial.ground.kafka, topic, None)
    trial.done["refused, told and mended"] += 1


def _alter(bootstrap: str, topic: str, limit: str | None) -> None:
    how = AlterConfigOpType.SET if limit else AlterConfigOpType.DELETE
    entry = ConfigEntry("max.message.bytes", limit, incremental_operation=how)
    asked = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry])
    admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
    for future in admin.incremental_alter_configs([asked], request_timeout=20).values():
        future.result()
