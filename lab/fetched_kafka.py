"""A Kafka broker fetched from the Maven repository by Ivy, a part of pyspark.

It is one KRaft node: broker and controller.
"""

from __future__ import annotations

import base64
import contextlib
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from uuid import uuid4

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from incsnap.errors import ServerUnreachable
from lab import cache
from lab.breakable import Breakable
from lab.child_programs import Child, run
from lab.free_port import PortTaken, free_ports, listens
from lab.java import java
from lab.maven import dependency, retrieve
from lab.progress import tell
from lab.run_folder import on_free_ports

VERSION = "4.3.1"
_LOG4J = "2.25.4"  # The version in this Kafka's release. Its SLF4J binding is not among Kafka's dependencies.
_READY_SECONDS = 120
_QUICK = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
_CLUSTER = "incsnapSandbox00000001"  # 22 characters of URL-safe base64: a Kafka Uuid.


#: Settings of a broker of three, with which the cluster can lose any one that is not its controller.
_THREE_COPIES = """\
default.replication.factor=3
min.insync.replicas=2
offsets.topic.replication.factor=3
transaction.state.log.replication.factor=3
transaction.state.log.min.isr=2
"""

#: Returns further settings of a broker for the ports of its plain listener and of its controller. They override ours.
SettingsOfPorts = Callable[[int, int], str]


@contextlib.contextmanager
def fetched_kafka(settings_of_ports: SettingsOfPorts | None = None, *, lasting: bool = False) -> Iterator[str]:
    """Run a broker with empty logs on a free loopback port until the block ends. Yield its `host:port`.

    Kafka is fetched first if the cache does not have it. `lasting` selects Kafka's own JVM options, for millions of
    records. The other options suit a test of a minute: 3.9 instead of 5.2 s to start, and 2.2 instead of 4.3 s for 200
    transactions of 20 producers.
    """
    with breakable_kafka(settings_of_ports, lasting=lasting) as (address, _):
        yield address


@contextlib.contextmanager
def breakable_kafka(
    settings_of_ports: SettingsOfPorts | None = None, *, lasting: bool = False, node: int = 1
) -> Iterator[tuple[str, Breakable]]:
    """Run a broker as `fetched_kafka` does. Yield its `host:port`, and a `Breakable` to kill, restart or suspend it.

    `node` is the number of the broker in its cluster.
    """
    installed = cache.entry(f"kafka-{VERSION}", _build)
    with on_free_ports(
        lambda folder: _server(installed, folder, settings_of_ports, () if lasting else _QUICK, node)
    ) as server:
        yield server


@contextlib.contextmanager
def three_brokers() -> Iterator[tuple[str, list[Breakable]]]:
    """Run a cluster of three brokers until the block ends; the first one is also its controller.

    Each topic has a copy on each broker, Kafka's inner topics too. So two brokers serve all of them.
    Yield their addresses, as `bootstrap.servers` has them, and a `Breakable` for each.
    """
    controllers: list[int] = []

    def first(_broker: int, controller: int) -> str:
        controllers[:] = [controller]
        return _THREE_COPIES

    def another(number: int) -> SettingsOfPorts:
        return lambda broker, _controller: (
            f"process.roles=broker\nnode.id={number}\nlisteners=PLAINTEXT://127.0.0.1:{broker}\n"
            f"controller.quorum.voters=1@127.0.0.1:{controllers[0]}\n{_THREE_COPIES}"
        )

    with contextlib.ExitStack() as stack:
        brokers = [stack.enter_context(breakable_kafka(first))]
        brokers += [stack.enter_context(breakable_kafka(another(node), node=node)) for node in (2, 3)]
        yield ",".join(address for address, _ in brokers), [each for _, each in brokers]


@contextlib.contextmanager
def _server(
    installed: Path, folder: Path, settings_of_ports: SettingsOfPorts | None, jvm: Sequence[str], node: int
) -> Iterator[tuple[str, Breakable]]:
    shutil.copytree(installed / "template", folder / "data")
    if node != 1:
        directory = base64.urlsafe_b64encode(uuid4().bytes).decode().rstrip("=")
        identity = f"node.id={node}\ndirectory.id={directory}\nversion=1\ncluster.id={_CLUSTER}\n"
        (folder / "data" / "meta.properties").write_text(identity)
    broker, controller = free_ports(2)
    settings = _settings(folder / "server.properties", folder / "data", broker, controller)
    if settings_of_ports is not None:
        with settings.open("a") as file:  # Java takes the last value of a name that stands twice.
            file.write(settings_of_ports(broker, controller))
    # 1 GB: enough for the benchmark's million rows. An idle broker takes a third of it.
    command = [*_kafka(installed), *jvm, "-Xms256m", "-Xmx1g", "kafka.Kafka", str(settings)]
    with Breakable("Kafka", command, folder / "kafka.log", lambda kafka: _wait_until_ready(kafka, broker)) as server:
        yield f"127.0.0.1:{broker}", server


def _wait_until_ready(server: Child, port: int) -> None:
    deadline = time.monotonic() + _READY_SECONDS
    while not (listens(port) and _answers(port)):
        if server.exit_code() is not None:
            log = server.log.read_text(errors="replace")
            error = PortTaken if "Address already in use" in log else ServerUnreachable
            raise error(f"Kafka stopped while starting:\n{server.last_words()}")
        if time.monotonic() > deadline:
            raise ServerUnreachable(f"Kafka did not answer within {_READY_SECONDS} s:\n{server.last_words()}")
        time.sleep(0.05)


def _answers(port: int) -> bool:
    try:
        # log_level 0: do not log that a starting broker refuses the connection.
        client = AdminClient({"bootstrap.servers": f"127.0.0.1:{port}", "log_level": 0})
        return bool(client.list_topics(timeout=2).brokers)
    except KafkaException:
        return False


def _kafka(installed: Path) -> list[str]:
    return [java(), f"-Dlog4j2.configurationFile={installed}/log4j2.properties", "-cp", f"{installed}/libs/*"]


def _settings(file: Path, data: Path, broker: int, controller: int) -> Path:
    file.write_text(
        f"""\
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller}
controller.listener.names=CONTROLLER
listeners=PLAINTEXT://127.0.0.1:{broker},CONTROLLER://127.0.0.1:{controller}
advertised.listeners=PLAINTEXT://127.0.0.1:{broker}
log.dirs={data}
# One node holds every copy; few partitions of the inner topics make the first start quick.
offsets.topic.replication.factor=1
offsets.topic.num.partitions=2
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
transaction.state.log.num.partitions=4
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
share.coordinator.state.topic.num.partitions=1
group.initial.rebalance.delay.ms=0
"""
    )
    return file


def _build(folder: Path, downloads: Path) -> None:
    """Fill `folder` with `libs` (jars), `log4j2.properties` and `template` (a formatted, empty log folder)."""
    tell(f"fetching Kafka {VERSION} into {cache.root()} (once; about 45 MB)")
    log = downloads / "log"
    log.unlink(missing_ok=True)
    dependencies = dependency("org.apache.kafka", "kafka_2.13", VERSION)
    dependencies += dependency("org.apache.logging.log4j", "log4j-slf4j-impl", _LOG4J)
    retrieve("Kafka", dependencies, f"{folder}/libs/[artifact]-[revision].[ext]", downloads, log)
    (folder / "log4j2.properties").write_text(_LOGGING)
    settings = _settings(downloads / "server.properties", folder / "template", 9092, 9093)
    tool = [*_kafka(folder), "kafka.tools.StorageTool", "format", "-t", _CLUSTER, "-c", str(settings)]
    run("Kafka's StorageTool", tool, log)


_LOGGING = """\
rootLogger.level=WARN
rootLogger.appenderRef.out.ref=out
appender.out.type=Console
appender.out.name=out
appender.out.layout.type=PatternLayout
appender.out.layout.pattern=%d %p %m (%c)%n
"""
