"""Kubernetes resources that hold the settings of a connector or of a worker.

A connector is a Strimzi `KafkaConnector` or a `Connector` of Confluent for Kubernetes. A worker is a Strimzi
`KafkaConnect`. Each may stand alone, beside other resources, or in the `List` that `kubectl get` prints.
https://strimzi.io/docs/operators/latest/configuring#type-KafkaConnectorSpec-reference
https://strimzi.io/docs/operators/latest/configuring#type-KafkaConnectSpec-reference
https://docs.confluent.io/operator/current/co-manage-connectors.html
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NoReturn

from incsnap.config.job_file import StrPath
from incsnap.config.unsupported import of_server
from incsnap.errors import ConfigError

#: Keys and indexes that lead from the root of a document to the object with the settings.
Steps = tuple[str | int, ...]
#: Kind of a resource -> the key in its spec that holds the settings.
Kinds = Mapping[str, str]
CONNECTORS: Kinds = {"KafkaConnector": "config", "Connector": "configs"}
WORKERS: Kinds = {"KafkaConnect": "config"}
LIST = "List"
#: Kind of Debezium's operator. It has no connector's settings.
SERVER = "DebeziumServer"
#: What a settings file may be, for hints of errors.
HINT = "Name a properties file, the JSON of Kafka Connect's REST API, or a KafkaConnector in YAML."
WORKER_HINT = "Name the properties file of a worker, or a KafkaConnect in YAML."
#: Fields of a worker's spec -> the worker's setting. `groupId` and the topics are fields since Strimzi's API v1.
_WORKER_FIELDS = {
    "bootstrapServers": "bootstrap.servers",
    "groupId": "group.id",
    "offsetStorageTopic": "offset.storage.topic",
    "statusStorageTopic": "status.storage.topic",
}
#: Converters of a worker whose `spec.config` names none. Strimzi sets them; Kafka Connect has no default.
_STRIMZIS = dict.fromkeys(("key.converter", "value.converter"), "org.apache.kafka.connect.json.JsonConverter")


@dataclass(frozen=True, slots=True)
class Found:
    """The object of a document that holds the settings."""

    config: Mapping[str, Any]  #: the settings
    outside: Mapping[str, Any]  #: settings that follow from other parts of the document
    place: Steps  #: leads to `config`
    not_run: str = ""  #: the field that asks Kafka Connect not to run the connector, with its value; "" for none

    def below(self, *steps: str | int) -> Found:
        """Return the settings of a document that holds this one behind the keys `steps`."""
        return replace(self, place=(*steps, *self.place))


def not_run(holder: Mapping[str, Any], *names: str) -> str:
    """Return the first of the fields `names` in `holder` that asks for a paused or stopped connector, or ""."""
    texts = ((name, str(holder.get(name)).lower()) for name in names)
    return next((f"{name}: {text}" for name, text in texts if text in ("paused", "stopped", "true")), "")


def only_resource(path: StrPath, documents: Sequence[Any], kinds: Kinds) -> Found:
    """Return the settings of the only resource of `kinds`. Raise ConfigError unless there is one."""
    resources = list(_of_kinds(documents, kinds))
    if not resources and (servers := list(_of_kinds(documents, {SERVER: ""}))):
        refuse_server(path, servers[0][1].get("spec"))
    if len(resources) != 1:
        one = "Give each job a file of its own." if kinds is CONNECTORS else "Give each worker a file of its own."
        hint = HINT if kinds is CONNECTORS else WORKER_HINT
        raise ConfigError(
            f"{path} has {len(resources)} resources of the kind {' or '.join(kinds)}",
            one if resources else f"{hint} Write an entry of a ConfigMap as such a file.",
        )
    place, resource = resources[0]
    kind = resource["kind"]
    spec, metadata, holder = resource.get("spec"), resource.get("metadata"), kinds[kind]
    if not isinstance(spec, dict) or not isinstance(spec.get(holder, {}), dict):
        raise ConfigError(f"{path}: the {kind} has no spec with a {holder}", HINT)
    outside = _worker(path, spec) if kinds is WORKERS else _connector(spec, metadata)
    return Found(spec.get(holder, {}), outside, (*place, "spec", holder), not_run(spec, "state", "pause"))


def refuse_server(path: StrPath, settings: Any) -> NoReturn:
    """Raise ConfigError for a file of Debezium Server whose object `settings` should hold the sink."""
    sink = settings.get("sink") if isinstance(settings, dict) else None
    kind = sink.get("type") if isinstance(sink, dict) else None
    raise ConfigError(f"{path}: {of_server(str(kind or 'kafka'))}")


def _connector(spec: Mapping[str, Any], metadata: Any) -> dict[str, Any]:
    own_name = metadata.get("name") if isinstance(metadata, dict) else None
    return {
        "name": spec.get("name", own_name),
        "connector.class": spec.get("class"),
        "tasks.max": spec.get("tasksMax", spec.get("taskMax")),
    }


def _worker(path: StrPath, spec: Mapping[str, Any]) -> dict[str, Any]:
    """Return the worker's settings that are fields of `spec`, and the converters that Strimzi sets by default.

    Raise ConfigError if the worker logs in to Kafka. The names of secrets in `tls` and `authentication` mean something
    to Strimzi alone.
    """
    login = [field for field in ("tls", "authentication") if spec.get(field) is not None]
    if login:
        raise ConfigError(
            f"{path}: the KafkaConnect takes its login to Kafka ({' and '.join(login)}) from secrets of Kubernetes",
            "Write the worker's settings as a properties file, with security.protocol and ssl.* or sasl.*.",
        )
    return {**_STRIMZIS, **{setting: spec.get(field) for field, setting in _WORKER_FIELDS.items()}}


def _of_kinds(documents: Sequence[Any], kinds: Kinds) -> Iterator[tuple[Steps, dict[str, Any]]]:
    """Yield each resource of `kinds`, also those in a `List`, with the keys that lead to it."""
    for index, document in enumerate(documents):
        if not isinstance(document, dict):
            continue
        if document.get("kind") in kinds:
            yield (index,), document
        items = document.get("items") if document.get("kind") == LIST else None
        for number, item in enumerate(items if isinstance(items, list) else ()):
            if isinstance(item, dict) and item.get("kind") in kinds:
                yield (index, "items", number), item
