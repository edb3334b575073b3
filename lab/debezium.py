"""Debezium in its own Kafka Connect worker: the reference for our records and our figures.

Ivy, a part of pyspark, fetches Connect and Debezium's plugin from the Maven repository. They lie in the user's cache,
beside the lab's Kafka. The worker is standalone: one process, with its offsets in a file.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from incsnap.errors import ServerUnreachable
from lab import cache, maven
from lab.child_programs import Child, child
from lab.fetched_kafka import VERSION as KAFKA_VERSION
from lab.free_port import free_ports
from lab.java import java
from lab.progress import tell
from lab.run_folder import run_folder
from lab.unpacking import unpack

VERSION = "3.6.1.Final"
_PLUGIN = "debezium-connector-mysql"
_LOG4J = "2.25.4"
#: Version of Debezium's transforms by scripts, the newest in Maven Central, and versions of their languages.
_SCRIPTING = "3.5.0.Final"
_GROOVY = "4.0.17"
_GRAAL_JS = "23.1.2"
#: Version of Apicurio's converter. Confluent's converter is not in Maven Central; this one writes the same format.
_APICURIO = "2.6.13.Final"
#: Jars that a plugin must not contain, because they would hide the worker's.
_CONNECTS_OWN = ("connect-*", "kafka-clients", "slf4j-api", "snappy-java", "zstd-jni", "lz4-java")
#: Options of a worker for one connector.
SMALL_HEAP = ("-Xmx900m",)
_READY_SECONDS = 120


def installed() -> Path:
    """Return the folder with `libs` (Kafka Connect) and `plugins` (Debezium's MySQL connector, an Avro converter).

    Fetch them first if the cache does not have them.
    """
    return cache.entry(f"debezium-{VERSION}-connect-{KAFKA_VERSION}-apicurio-{_APICURIO}", _build)


def installed_with_scripting() -> Path:
    """Return a copy of the folder `installed` that also has Debezium's Filter and ContentBasedRouter.

    Fetch their jars and their languages, Groovy and JavaScript, if the cache does not have them.
    """
    name = f"{installed().name}-scripting-{_SCRIPTING}-groovy-{_GROOVY}-graal-js-{_GRAAL_JS}"
    return cache.entry(name, _add_scripting)


class ConnectWorker:
    """A running Connect worker."""

    def __init__(self, program: Child, port: int) -> None:
        self.program = program
        self.url = f"http://127.0.0.1:{port}"  #: address of its REST interface

    def start(self, name: str, properties: Mapping[str, str]) -> None:
        """Add a connector. It runs some seconds later: see `state`."""
        self.ask("PUT", f"/connectors/{name}/config", dict(properties))

    def stop(self, name: str) -> None:
        """Delete the connector."""
        self.ask("DELETE", f"/connectors/{name}")

    def state(self, name: str) -> str:
        """Return `RUNNING` if the connector and its task run, else the failed state with its trace."""
        status = self.ask("GET", f"/connectors/{name}/status")
        parts = [status["connector"], *status["tasks"]]
        if len(parts) < 2:
            return "STARTING"
        wrong = [part for part in parts if part["state"] != "RUNNING"]
        return "RUNNING" if not wrong else f"{wrong[0]['state']} {wrong[0].get('trace', '')}"

    def streams(self, server_id: int) -> bool:
        """Whether the connector with this `database.server.id` has begun to read the binlog."""
        return f"(sid:{server_id}, cid:" in self.program.log.read_text(errors="replace")

    def end(self, seconds: float = 120.0) -> None:
        """End the worker with SIGTERM, so that it writes its offsets. Debezium may wait for its stream for 90 s.

        Raise ServerUnreachable if it does not end in time.
        """
        os.kill(self.program.pid, signal.SIGTERM)
        deadline = time.monotonic() + seconds
        while self.program.exit_code() is None:
            if time.monotonic() > deadline:
                raise ServerUnreachable(f"Kafka Connect did not end in {seconds:.0f} s:\n{self.program.last_words()}")
            time.sleep(0.05)

    def answers(self) -> bool:
        """Whether the worker's REST interface answers."""
        try:
            return "version" in self.ask("GET", "/")
        except OSError:
            return False

    def ask(self, method: str, path: str, body: object = None) -> Any:
        """Return the answer of the worker's REST interface; None for an empty one.

        Raise ServerUnreachable if the worker refuses.
        """
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data, {"Content-Type": "application/json"}, method=method)
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                text = answer.read()
        except urllib.error.HTTPError as error:
            # 404 and 409: Connect does not know the connector yet, or is not ready. The caller asks again.
            if error.code in (404, 409) and method == "GET":
                return {"connector": {"state": "UNASSIGNED"}, "tasks": []}
            refusal = error.read().decode(errors="replace")
            raise ServerUnreachable(f"Kafka Connect refused {method} {path}: {refusal}") from error
        return json.loads(text) if text else None


def avro_converters(registry_url: str) -> dict[str, str]:
    """Return a connector's settings for Avro in Confluent's wire format.

    `registry_url` comes from `fetched_registry`.
    """
    options = {
        "": "io.apicurio.registry.utils.converter.AvroConverter",
        ".apicurio.registry.url": registry_url.removesuffix("/apis/ccompat/v7") + "/apis/registry/v2",
        ".apicurio.registry.auto-register": "true",
        ".apicurio.registry.find-latest": "true",
        # A schema's number stands in four bytes before the value, not in a header.
        ".apicurio.registry.headers.enabled": "false",
        ".apicurio.registry.as-confluent": "true",
        ".apicurio.registry.use-id": "contentId",
    }
    return {f"{part}.converter{name}": value for part in ("key", "value") for name, value in options.items()}


@contextlib.contextmanager
def connect_worker(
    kafka: str,
    log: Path | None = None,
    *,
    offsets: Path | None = None,
    connectors: Sequence[Path] = (),
    jvm_options: Sequence[str] = SMALL_HEAP,
    scripting: bool = False,
) -> Iterator[ConnectWorker]:
    """Run a standalone worker at the broker `kafka` until the block ends.

    `offsets` is the file of its offsets, if a later worker is to continue there. Otherwise they are removed with the
    block. `connectors` are properties files of connectors to start with; each contains `name`. `scripting`: whether
    connectors may have transforms by scripts. Raise ServerUnreachable if the worker does not start.
    """
    place = installed_with_scripting() if scripting else installed()
    with run_folder() as folder:
        (port,) = free_ports(1)
        settings = folder / "worker.properties"
        settings.write_text(
            f"""\
bootstrap.servers={kafka}
listeners=http://127.0.0.1:{port}
plugin.path={place}/plugins
plugin.discovery=hybrid_warn
key.converter=org.apache.kafka.connect.json.JsonConverter
value.converter=org.apache.kafka.connect.json.JsonConverter
key.converter.schemas.enable=false
value.converter.schemas.enable=false
offset.storage.file.filename={offsets or folder / "offsets"}
offset.flush.interval.ms=5000
connector.client.config.override.policy=All
"""
        )
        command = [java(), *jvm_options, f"-Dlog4j2.configurationFile={place}/log4j2.properties"]
        command += ["-cp", f"{place}/libs/*", "org.apache.kafka.connect.cli.ConnectStandalone", str(settings)]
        with child("Kafka Connect", [*command, *map(str, connectors)], log or folder / "connect.log") as program:
            worker = ConnectWorker(program, port)
            deadline = time.monotonic() + _READY_SECONDS
            while not worker.answers():
                if program.exit_code() is not None or time.monotonic() > deadline:
                    raise ServerUnreachable(f"Kafka Connect does not start:\n{program.last_words()}")
                time.sleep(0.2)
            yield worker


def _build(folder: Path, downloads: Path) -> None:
    tell(f"fetching Debezium {VERSION} and Kafka Connect {KAFKA_VERSION} into {cache.root()} (once; about 90 MB)")
    log = downloads / "log"
    log.unlink(missing_ok=True)
    connect = [
        maven.dependency("org.apache.kafka", "connect-runtime", KAFKA_VERSION),
        maven.dependency("org.apache.kafka", "connect-json", KAFKA_VERSION),
        maven.dependency("org.apache.logging.log4j", "log4j-slf4j-impl", _LOG4J),
        maven.dependency("org.apache.logging.log4j", "log4j-core", _LOG4J),
    ]
    maven.retrieve("Kafka Connect", "".join(connect), f"{folder}/libs/[artifact]-[revision].[ext]", downloads, log)
    plugin = maven.archive("io.debezium", _PLUGIN, VERSION, "plugin")
    maven.retrieve("Debezium", plugin, f"{downloads}/plugin/[artifact].[ext]", downloads, log)
    unpack(downloads / f"plugin/{_PLUGIN}.tar.gz", folder / "plugins")
    converter = maven.dependency("io.apicurio", "apicurio-registry-utils-converter", _APICURIO)
    maven.retrieve("Apicurio's converter", converter, f"{folder}/plugins/apicurio/[artifact].[ext]", downloads, log)
    for name in _CONNECTS_OWN:
        for jar in (folder / "plugins/apicurio").glob(f"{name}.jar"):
            jar.unlink()
    (folder / "log4j2.properties").write_text(_LOGGING)


def _add_scripting(folder: Path, downloads: Path) -> None:
    tell(f"fetching Debezium's transforms by scripts into {cache.root()} (once; about 40 MB)")
    shutil.copytree(installed(), folder, dirs_exist_ok=True, copy_function=os.link)
    place, log = f"{folder}/plugins/{_PLUGIN}/[artifact]-[revision].[ext]", downloads / "log"
    scripting = maven.jar("io.debezium", "debezium-scripting", _SCRIPTING)
    maven.retrieve("Debezium's transforms by scripts", scripting, place, downloads, log, use_poms=False)
    languages = [
        maven.dependency("org.apache.groovy", "groovy-jsr223", _GROOVY),
        maven.dependency("org.graalvm.js", "js-language", _GRAAL_JS),
        maven.dependency("org.graalvm.js", "js-scriptengine", _GRAAL_JS),
    ]
    maven.retrieve("Groovy and JavaScript", "".join(languages), place, downloads, log)


_LOGGING = """\
rootLogger.level=WARN
rootLogger.appenderRef.out.ref=out
logger.debezium.name=io.debezium
logger.debezium.level=INFO
# Says "Connected to host:port at binlog/pos (sid:..., cid:...)".
logger.binlog.name=com.github.shyiko.mysql.binlog
logger.binlog.level=INFO
appender.out.type=Console
appender.out.name=out
appender.out.layout.type=PatternLayout
appender.out.layout.pattern=%d %p %m (%c)%n
"""
