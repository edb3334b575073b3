"""A file as people have it becomes names and values: properties, Connect's REST API, Strimzi's resource.

- properties, as Kafka Connect standalone and Debezium Server read them;
- JSON: what is sent to ``POST /connectors`` (``{"name": ..., "config": {...}}``) or to ``PUT .../config``, its inside,
  or what ``GET /connectors?expand=info`` answers where there is one
  (https://docs.confluent.io/platform/current/connect/references/restapi.html);
- YAML, or JSON: a ``KafkaConnector``, also in the ``List`` that ``kubectl get`` prints
  (https://strimzi.io/docs/operators/latest/configuring#type-KafkaConnectorSpec-reference).

The form is found by the text, not by the file's name: a ConfigMap's key has any.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import javaproperties
import yaml

from incsnap.errors import ConfigError

_JSON = re.compile(r"\s*(\[\s*)?\{")
_RESOURCE = re.compile(r"^kind\s*:\s*\S", re.MULTILINE)
_KIND, _LIST = "KafkaConnector", "List"
_HINT = "Name a properties file, the JSON of Kafka Connect's REST API, or a KafkaConnector in YAML."


def read_document(path: str | Path) -> dict[str, str]:
    """Names and values of a connector's or worker's file. Raises ``ConfigError``."""
    try:
        text = Path(path).read_text(encoding="utf-8-sig")
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}", "Name a settings file that exists.") from None
    except UnicodeDecodeError:
        raise ConfigError(f"{path} is not text in UTF-8", _HINT) from None
    if _JSON.match(text):
        return _of_json(path, text)
    if _RESOURCE.search(text):
        return _of_yaml(path, text)
    try:
        return dict(javaproperties.loads(text))
    except ValueError as error:
        raise ConfigError(f"{path} is not a properties file: {error}", "Write one name=value on each line.") from None


def _of_json(path: str | Path, text: str) -> dict[str, str]:
    try:
        document = json.loads(text)
    except ValueError as error:
        raise ConfigError(f"{path} is not JSON: {error}", _HINT) from None
    if not isinstance(document, dict):
        raise ConfigError(f"{path} is a list", "Give each job a file of its own.")
    if document.get("kind") in (_KIND, _LIST):
        return _of_resources(path, [document])
    answers = [each["info"] for each in document.values() if isinstance(each, dict) and "info" in each]
    if len(answers) > 1:
        raise ConfigError(f"{path} has {len(answers)} connectors", "Give each job a file of its own.")
    document = answers[0] if answers else document
    if not isinstance(document.get("config"), dict):
        return _values(path, document)
    name = {"name": document["name"]} if "name" in document else {}
    return _values(path, {**name, **document["config"]})


def _of_yaml(path: str | Path, text: str) -> dict[str, str]:
    try:
        documents: Iterable[Any] = list(yaml.load_all(text, Loader=_Loader))
    except yaml.YAMLError as error:
        raise ConfigError(f"{path} is not YAML: {' '.join(str(error).split())}", _HINT) from None
    return _of_resources(path, documents)


def _of_resources(path: str | Path, documents: Iterable[Any]) -> dict[str, str]:
    known = [document for document in documents if isinstance(document, dict)]
    listed = [item for each in known if each.get("kind") == _LIST for item in each.get("items") or ()]
    connectors = [each for each in (*known, *listed) if isinstance(each, dict) and each.get("kind") == _KIND]
    if len(connectors) != 1:
        raise ConfigError(
            f"{path} has {len(connectors)} resources of the kind {_KIND}", "Give each job a file of its own."
        )
    resource = connectors[0]
    spec, metadata = resource.get("spec"), resource.get("metadata")
    if not isinstance(spec, dict) or not isinstance(spec.get("config", {}), dict):
        raise ConfigError(f"{path}: the {_KIND} has no spec with a config", _HINT)
    outside = {
        "name": metadata.get("name") if isinstance(metadata, dict) else None,
        "connector.class": spec.get("class"),
        "tasks.max": spec.get("tasksMax"),
    }
    return _values(path, {**outside, **spec.get("config", {})})


class _Loader(yaml.SafeLoader):
    """Truth values are Kubernetes' (``no`` is false there); all others stay as they are written: ``010``, ``1.50`` and
    ``2026-11-22`` too."""


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag.rpartition(":")[2] in ("null", "merge", "bool")]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def _values(path: str | Path, config: Mapping[str, Any]) -> dict[str, str]:
    """Connect's values are texts; of a number or a truth value, as its REST API makes them."""
    values: dict[str, str] = {}
    for name, value in config.items():
        if isinstance(value, dict | list):
            raise ConfigError(f"{path}: {name} is not a text but {json.dumps(value)[:60]}", _HINT)
        if value is not None:
            values[str(name)] = str(value).lower() if isinstance(value, bool) else str(value)
    return values
