"""Parsing a settings file into names and values.

Three forms are supported:

    properties    as Kafka Connect standalone and Debezium Server read them
    JSON          the body of `POST /connectors` or `PUT .../config`, its "config" alone,
                  or the answer of `GET /connectors?expand=info` with one connector
    YAML or JSON  a Strimzi `KafkaConnector`, also inside the `List` that `kubectl get` prints

The content decides, not the file's name: the key of a ConfigMap may have any name.
https://docs.confluent.io/platform/current/connect/references/restapi.html
https://strimzi.io/docs/operators/latest/configuring#type-KafkaConnectorSpec-reference
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
    """Return the names and values in the file of a connector or worker.

    Raise ConfigError if the file cannot be parsed.
    """
    try:
        text = Path(path).read_text(encoding="utf-8-sig")
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}", "Name a settings file that exists.") from None
    except UnicodeDecodeError:
        raise ConfigError(f"{path} is not text in UTF-8", _HINT) from None
    form, hint = "a properties file", "Write one name=value on each line."
    try:
        if _JSON.match(text):
            form, hint = "JSON", _HINT
            return _of_json(path, json.loads(text))
        if _RESOURCE.search(text):
            form, hint = "YAML", _HINT
            return _of_resources(path, list(yaml.load_all(text, Loader=_Loader)))
        return _values(path, javaproperties.loads(text))
    except RecursionError:
        raise ConfigError(f"{path} is nested too deeply", _HINT) from None
    # tags of YAML such as `!!int x` raise ValueError, LookupError or TypeError
    except (yaml.YAMLError, ValueError, LookupError, TypeError) as error:
        raise ConfigError(f"{path} is not {form}: {_plain(' '.join(str(error).split()))}", hint) from None


def _of_json(path: str | Path, document: Any) -> dict[str, str]:
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


def _of_resources(path: str | Path, documents: Iterable[Any]) -> dict[str, str]:
    known = [document for document in documents if isinstance(document, dict)]
    lists = [each.get("items") for each in known if each.get("kind") == _LIST]
    listed = [item for items in lists if isinstance(items, list) for item in items]
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
    """A YAML loader that keeps scalars as text, for example `010`, `1.50` and `2026-11-22`.

    Booleans and null are the exceptions. They are read as Kubernetes reads them, so `no` is false.
    """


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag.rpartition(":")[2] in ("null", "merge", "bool")]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def _values(path: str | Path, config: Mapping[str, Any]) -> dict[str, str]:
    """Return the values as text. Numbers and booleans get the text that Connect's REST API gives them.

    Raise ConfigError for an object, a list or a lone surrogate. No message shows a value, because a misplaced value may
    be a password.
    """
    values: dict[str, str] = {}
    for name, value in config.items():
        if isinstance(value, dict | list):
            kind = "an object" if isinstance(value, dict) else "a list"
            raise ConfigError(
                f"{path}: {_plain(str(name))} is not a text but {kind}",
                "Write the settings that stand inside of it as the file, or the list as a text with commas.",
            )
        text = str(value).lower() if isinstance(value, bool) else str(value)
        if _plain(text) != text or _plain(str(name)) != str(name):
            raise ConfigError(
                f"{path}: {_plain(str(name))} holds half a character (a lone surrogate, as \\ud800)",
                "Write the character in UTF-8, or both halves of its pair.",
            )
        if value is not None:
            values[str(name)] = text
    return values


def _plain(text: str) -> str:
    """Return `text` with lone surrogates escaped, because terminals and logs cannot encode them."""
    return text.encode(errors="backslashreplace").decode()
