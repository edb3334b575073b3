"""Parsing a settings file into names and values.

These forms are supported:

    properties    as Kafka Connect standalone and Debezium Server read them
    JSON          the body of `POST /connectors` or `PUT .../config`, its "config" alone, the answer of
                  `GET /connectors?expand=info` with one connector, or a document of MSK Connect (`msk_connect`)
    YAML or JSON  a resource of Kubernetes (`resources`), or the document of a JSON form above, written as YAML

The content decides, because the key of a ConfigMap may have any name. Only lines such as `name: value`, which may be
properties or YAML, are properties in a file whose name ends with `.properties`.
https://docs.confluent.io/platform/current/connect/references/restapi.html
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import javaproperties
import yaml

from incsnap.config import repeated_names
from incsnap.config.form import JSON, Form, form_of
from incsnap.config.job_file import StrPath, options_of
from incsnap.config.msk_connect import beside
from incsnap.config.parse_faults import fault, plain, refuse_generators, refuse_other_languages, repair
from incsnap.config.resources import (
    CONNECTORS,
    HINT,
    LIST,
    SERVER,
    WORKER_HINT,
    WORKERS,
    Found,
    Kinds,
    Steps,
    not_run,
    only_resource,
    refuse_server,
)
from incsnap.config.secrets import without_salt
from incsnap.errors import ConfigError

#: Keys of a document that hold the settings: Connect's REST API, MSK Connect, and its resource of CloudFormation.
_HOLDERS = ("config", "connectorConfiguration", "ConnectorConfiguration")


@dataclass(frozen=True, slots=True)
class Document:
    """A settings file: its text, and the settings in it."""

    text: str  #: as it is in the file
    form: Form  #: the kind of document
    values: dict[str, str]  #: name -> value; includes what the document says outside of its settings, such as a class
    repeated: tuple[str, ...] = ()  #: names that stand more than once; the last value is used
    place: Steps = ()  #: leads to the object with the settings; in YAML the first index counts the documents
    outside: frozenset[str] = frozenset()  #: those names in `values` that do not stand in the object with the settings
    not_run: str = ""  #: the field of the document that asks Kafka Connect not to run the connector; "" for none


def read_document(path: StrPath) -> dict[str, str]:
    """Return the names and values in the file of a connector. Raise ConfigError if the file cannot be parsed."""
    return open_document(path).values


def read_worker(path: StrPath | None) -> dict[str, str]:
    """Return the names and values in the file of a worker; none without a file.

    Raise ConfigError if the file cannot be parsed.
    """
    return {} if path is None else open_worker(path).values


def open_document(path: StrPath) -> Document:
    """Return the file of a connector. Raise ConfigError if the file cannot be parsed.

    Settings of the command line (`JobFile`) replace those of the file.
    """
    document, options = _opened(path, CONNECTORS), options_of(path)
    return replace(document, values={**document.values, **options}, outside=document.outside | options.keys())


def open_worker(path: StrPath) -> Document:
    """Return the file of a worker. Raise ConfigError if the file cannot be parsed, or has no setting of a worker."""
    document = _opened(path, WORKERS)
    # A worker does not start without bootstrap.servers. Read as properties, a Compose file has names without dots.
    if not any("." in name for name in document.values):
        variables = "Write variables of a container as its settings: CONNECT_GROUP_ID is group.id."
        raise ConfigError(f"{path} has no setting of a worker", f"{WORKER_HINT} {variables}")
    return document


def _opened(path: StrPath, kinds: Kinds) -> Document:
    try:
        text = Path(path).read_text(encoding="utf-8-sig")
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}", "Name a settings file that exists.") from None
    except UnicodeDecodeError:
        raise ConfigError(f"{path} is not text in UTF-8", HINT) from None
    return read_text(text, path, kinds)


def read_text(text: str, path: StrPath, kinds: Kinds = CONNECTORS, form: Form | None = None) -> Document:
    """Return the settings file with the content `text`. Raise ConfigError if it cannot be parsed.

    `form` is the language of the file. By default the text and the path tell it.
    """
    form = form or form_of(path, text)
    hint = "Write one name=value on each line." if form is Form.PROPERTIES else HINT
    try:
        if form is Form.PROPERTIES:
            values = _of_properties(path, text)
            return Document(text, form, _values(path, values), repeated_names.in_properties(text))
        root = json.loads(text) if form is Form.JSON else list(yaml.load_all(text, Loader=_Loader))
        settings = _of_json(path, root, kinds) if form is Form.JSON else _of_yaml(path, root, kinds)
        repeated = repeated_names.in_json(text) if form is Form.JSON else repeated_names.in_yaml(text)
        values = _values(path, {**settings.outside, **settings.config})
        outside = values.keys() - {str(name) for name in settings.config}
        return Document(text, form, values, repeated, settings.place, frozenset(outside), settings.not_run)
    except RecursionError:
        raise ConfigError(f"{path} is nested too deeply", HINT) from None
    # tags of YAML such as `!!int x` raise ValueError, LookupError or TypeError
    except (yaml.YAMLError, ValueError, LookupError, TypeError) as error:
        refuse_generators(path, text)
        raise ConfigError(f"{path} is not {form.value}: {fault(error)}", repair(error, hint)) from None


def _of_properties(path: StrPath, text: str) -> dict[str, str]:
    """Return the settings of a properties file. Raise ConfigError if it is a file of another kind."""
    values: dict[str, str] = javaproperties.loads(text)
    refuse_other_languages(path, text, values)
    return values


def _of_json(path: StrPath, document: Any, kinds: Kinds) -> Found:
    """Return the settings of a JSON document, or of a YAML document of the same shape. Raise ConfigError."""
    if isinstance(document, list):
        if len(document) != 1:
            raise ConfigError(f"{path} is a list", "Give each job a file of its own.")
        return _of_json(path, document[0], kinds).below(0)
    if not isinstance(document, dict):
        raise ConfigError(f"{path} has no settings", HINT)
    if document.get("kind") in (*CONNECTORS, *WORKERS, LIST, SERVER):
        resource = only_resource(path, [document], kinds)
        return replace(resource, place=resource.place[1:])
    if isinstance(document.get("debezium"), dict):
        refuse_server(path, document["debezium"])
    answers = [name for name, each in document.items() if isinstance(each, dict) and "info" in each]
    if len(answers) > 1:
        raise ConfigError(f"{path} has {len(answers)} connectors", "Give each job a file of its own.")
    if answers:
        return _of_json(path, document[answers[0]]["info"], kinds).below(answers[0], "info")
    for holder in _HOLDERS:
        if isinstance(document.get(holder), str) and JSON.match(document[holder]):
            raise ConfigError(
                f"{path}: {holder} is not an object but a text", "Write this text, which is JSON, as the file."
            )
        if isinstance(document.get(holder), dict):
            outside = beside(document, document[holder])
            outside["name"] = document.get("name", outside["name"])
            return Found(document[holder], outside, (holder,), not_run(document, "initial_state"))
    return Found(document, {}, ())


def _of_yaml(path: StrPath, documents: Sequence[Any], kinds: Kinds) -> Found:
    """Return the settings of a YAML file: those of its only resource, or of its only document. Raise ConfigError."""
    plain = [index for index, each in enumerate(documents) if each is not None]
    if len(plain) == 1:
        only = documents[plain[0]]
        if isinstance(only, list) or (isinstance(only, dict) and "kind" not in only):
            return _of_json(path, only, kinds).below(plain[0])
    return only_resource(path, documents, kinds)


class _Loader(yaml.SafeLoader):
    """A YAML loader that keeps scalars as text, for example `010`, `1.50` and `2026-11-22`.

    Booleans and null are the exceptions. They are read as Kubernetes reads them, so `no` is false.
    """


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag.rpartition(":")[2] in ("null", "merge", "bool")]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def _values(path: StrPath, config: Mapping[str, Any]) -> dict[str, str]:
    """Return the values as text. Numbers and booleans get the text that Connect's REST API gives them.

    Raise ConfigError for an object, a list or a lone surrogate. No message shows a value, because a misplaced value may
    be a password.
    """
    values: dict[str, str] = {}
    for name, value in config.items():
        if isinstance(value, dict | list):
            kind = "an object" if isinstance(value, dict) else "a list"
            raise ConfigError(
                f"{path}: {plain(without_salt(str(name)))} is not a text but {kind}",
                "Write the settings that stand inside of it as the file, or the list as a text with commas.",
            )
        text = str(value).lower() if isinstance(value, bool) else str(value)
        if plain(text) != text or plain(str(name)) != str(name):
            raise ConfigError(
                f"{path}: {plain(without_salt(str(name)))} holds half a character (a lone surrogate, as \\ud800)",
                "Write the character in UTF-8, or both halves of its pair.",
            )
        if value is not None:
            values[str(name)] = text
    return values
