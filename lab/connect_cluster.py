"""Distributed workers of Kafka Connect with Debezium: they keep offsets in a topic, and may write exactly once."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from incsnap.errors import ServerUnreachable
from lab.child_programs import Child, child
from lab.debezium import SMALL_HEAP, ConnectWorker, installed
from lab.free_port import free_ports
from lab.java import java
from lab.running_job import write_properties

_READY_SECONDS = 120
_STOP_SECONDS = 60


class Member(ConnectWorker):
    """A worker of a group."""

    def __init__(self, program: Child, port: int, file: Path) -> None:
        super().__init__(program, port)
        self.file = file  #: the worker's file
        self.url = f"http://127.0.0.1:{port}"
        self.id = f"127.0.0.1:{port}"  #: the name under which the group knows the worker

    def create_stopped(self, name: str, properties: Mapping[str, str]) -> None:
        """Add a connector that does not run until `resume`. A new group may refuse it for some seconds."""
        self.ask("POST", "/connectors", {"name": name, "config": dict(properties), "initial_state": "STOPPED"})

    def stop_cleanly(self, name: str) -> None:
        """Stop the connector, and wait until it has stopped. Raise ServerUnreachable if it does not stop in time."""
        self.ask("PUT", f"/connectors/{name}/stop")
        deadline = time.monotonic() + _STOP_SECONDS
        while self.states(name) != ("STOPPED",):
            if time.monotonic() > deadline:
                raise ServerUnreachable(f"the connector did not stop: {self.states(name)}")
            time.sleep(0.1)

    def resume(self, name: str) -> None:
        """Let a stopped connector run."""
        self.ask("PUT", f"/connectors/{name}/resume")

    def states(self, name: str) -> tuple[str, ...]:
        """Return the states of the connector and of its tasks."""
        status = self.ask("GET", f"/connectors/{name}/status")
        return (status["connector"]["state"], *(task["state"] for task in status["tasks"]))

    def offset(self, name: str) -> dict[str, Any]:
        """Return the offset that Connect has written for the connector; an empty one if there is none."""
        offsets = self.ask("GET", f"/connectors/{name}/offsets").get("offsets")
        return dict(offsets[0]["offset"]) if offsets else {}

    def task_worker(self, name: str) -> str:
        """Return the id of the worker that runs the connector's task; "" if none does."""
        tasks = self.ask("GET", f"/connectors/{name}/status")["tasks"]
        return str(tasks[0]["worker_id"]) if tasks and tasks[0]["state"] == "RUNNING" else ""


def worker_settings(kafka: str, group: str, *, exactly_once: bool) -> dict[str, str]:
    """Return the settings of the workers of `group`, without their addresses."""
    topics = {f"{kind}.storage.topic": f"{group}-{kind}s" for kind in ("config", "offset", "status")}
    factors = {f"{kind}.storage.replication.factor": "1" for kind in ("config", "offset", "status")}
    return {
        "bootstrap.servers": kafka,
        "group.id": group,
        **topics,
        **factors,
        "offset.storage.partitions": "3",
        "status.storage.partitions": "1",
        "plugin.path": f"{installed()}/plugins",
        "plugin.discovery": "hybrid_warn",
        "key.converter": "org.apache.kafka.connect.json.JsonConverter",
        "value.converter": "org.apache.kafka.connect.json.JsonConverter",
        "key.converter.schemas.enable": "false",
        "value.converter.schemas.enable": "false",
        "offset.flush.interval.ms": "5000",
        "exactly.once.source.support": "enabled" if exactly_once else "disabled",
        "session.timeout.ms": "6000",
        "heartbeat.interval.ms": "1500",
        "scheduled.rebalance.max.delay.ms": "500",
        "connector.client.config.override.policy": "All",
    }


@contextlib.contextmanager
def member(
    folder: Path, log: Path, settings: Mapping[str, str], jvm_options: Sequence[str] = SMALL_HEAP
) -> Iterator[Member]:
    """Run a worker with `settings` until the block ends. `folder` gets its file, `log` its log."""
    (port,) = free_ports(1)
    listeners = {"listeners": f"http://127.0.0.1:{port}", "rest.advertised.host.name": "127.0.0.1"}
    file = write_properties(folder / f"worker-{port}.properties", {**settings, **listeners})
    place = installed()
    command = [java(), *jvm_options, f"-Dlog4j2.configurationFile={place}/log4j2.properties"]
    command += ["-cp", f"{place}/libs/*", "org.apache.kafka.connect.cli.ConnectDistributed", str(file)]
    with child("Kafka Connect", command, log) as program:
        yield Member(program, port, file)


def wait_for(worker: Member) -> None:
    """Wait until the worker answers. Raise ServerUnreachable if it does not start."""
    deadline = time.monotonic() + _READY_SECONDS
    while not worker.answers():
        if worker.program.exit_code() is not None or time.monotonic() > deadline:
            raise ServerUnreachable(f"Kafka Connect does not start:\n{worker.program.last_words()}")
        time.sleep(0.2)
