"""Names that a settings file gives more than once. Each parser takes the last value and says nothing."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from io import StringIO
from typing import Any

import javaproperties
import yaml


def in_properties(text: str) -> tuple[str, ...]:
    """Return the names that a properties file gives more than once, in its order."""
    elements = javaproperties.parse(StringIO(text))
    return _repeated(each.key for each in elements if isinstance(each, javaproperties.KeyValue))


def in_json(text: str) -> tuple[str, ...]:
    """Return the names that an object of a JSON document gives more than once. Raise ValueError if it is not JSON."""
    repeated: list[str] = []

    def collect(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        repeated.extend(_repeated(name for name, _ in pairs))
        return dict(pairs)

    json.loads(text, object_pairs_hook=collect)
    return tuple(repeated)


def in_yaml(text: str) -> tuple[str, ...]:
    """Return the names that a mapping of a YAML file gives more than once. Raise YAMLError if it is not YAML."""
    repeated: list[str] = []
    seen: set[int] = set()
    nodes = [node for node in yaml.compose_all(text, Loader=yaml.SafeLoader) if node is not None]
    while nodes:
        node = nodes.pop()
        if id(node) in seen:  # An alias leads to a node that was seen.
            continue
        seen.add(id(node))
        if isinstance(node, yaml.MappingNode):
            repeated.extend(_repeated(str(key.value) for key, _ in node.value if isinstance(key, yaml.ScalarNode)))
            nodes.extend(value for _, value in node.value)
        elif isinstance(node, yaml.SequenceNode):
            nodes.extend(node.value)
    return tuple(repeated)


def _repeated(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(name for name, count in Counter(names).items() if count > 1)
