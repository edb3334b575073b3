"""Applying changes of settings to the text of a settings file, so that its order and its comments stay."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from io import StringIO
from typing import Any

import javaproperties
import yaml

from incsnap.config.corrections import Change
from incsnap.config.documents import Document, Form
from incsnap.errors import ConfigError

#: An escaped character, and those that need no escape in a value.
_ESCAPE, _PLAIN = re.compile(r"\\(.)"), ":=#!"
_INDENT = re.compile(r"[\[{]\s*?\n([ \t]+)\S")


def rewritten(document: Document, changes: Sequence[Change]) -> str:
    """Return the text of `document` with `changes`. The text has the form of the old one.

    Properties and YAML keep their comments and their order. JSON keeps its order. Raise ConfigError if a setting stands
    where it cannot be replaced, for example behind a merge key of YAML.
    """
    if not changes:
        return document.text
    if document.values.keys() == document.outside:
        raise ConfigError("the file has no object with settings", f"Correct it by hand: {changes[0]}")
    if document.form is Form.PROPERTIES:
        return "".join(_properties(document.text, changes))
    if document.form is Form.JSON:
        return _json(document, changes)
    return _yaml(document, changes)


def _properties(text: str, changes: Sequence[Change]) -> Iterator[str]:
    """Yield the lines of a properties file with `changes`. Added settings come last."""
    by_name = {change.old: change for change in changes if change.old}
    last = "\n"
    for element in javaproperties.parse(StringIO(text)):
        change = by_name.get(element.key) if isinstance(element, javaproperties.KeyValue) else None
        line: str = element.source
        if change is not None:
            line = _line(element, change)
        last = line or last
        yield line
    if any(not change.old for change in changes) and not last.endswith(("\n", "\r")):
        yield "\n"
    for change in changes:
        if not change.old:
            yield _assigned(change.new, change.value or "")


def _line(element: Any, change: Change) -> str:
    """Return the line of a properties file with `change`. A line whose value stays is changed in its name only."""
    if not change.new:
        return ""
    if change.value is None and element.key in element.source:
        return str(element.source).replace(element.key, change.new, 1)
    value = element.value if change.value is None else change.value
    return _assigned(change.new, value)


def _assigned(name: str, value: str) -> str:
    """Return the line of a properties file that sets `name` to `value`."""
    escaped = javaproperties.escape(value)
    return f"{name}={_ESCAPE.sub(lambda each: each[1] if each[1] in _PLAIN else each[0], escaped)}\n"


def _json(document: Document, changes: Sequence[Change]) -> str:
    """Return a JSON document with `changes`, indented as before."""
    root = json.loads(document.text)
    settings = root
    for step in document.place:
        settings = settings[step]
    pairs = list(_pairs(settings, changes))
    settings.clear()
    settings.update(pairs)
    indent = _INDENT.search(document.text)
    return f"{json.dumps(root, indent=indent[1] if indent else None, ensure_ascii=False)}\n"


def _pairs(settings: dict[str, Any], changes: Sequence[Change]) -> Iterator[tuple[str, Any]]:
    """Yield names and values of `settings` with `changes`."""
    by_name = {change.old: change for change in changes if change.old}
    for name, value in settings.items():
        change = by_name.get(name)
        if change is None:
            yield name, value
        elif change.new:
            yield change.new, value if change.value is None else change.value
    yield from ((change.new, change.value) for change in changes if not change.old)


def _yaml(document: Document, changes: Sequence[Change]) -> str:
    """Return a YAML document with `changes`. Only the keys and values of changed settings are replaced."""
    node: Any = list(yaml.compose_all(document.text, Loader=yaml.SafeLoader))[int(document.place[0])]
    for step in document.place[1:]:
        node = node.value[step] if isinstance(step, int) else dict(_named(node))[step][1]
    entries = dict(_named(node))
    edits = []
    for change in changes:
        if change.old and change.old not in entries:
            raise ConfigError(
                f"{change.old} cannot be replaced: it does not stand among the settings themselves",
                f"Correct it by hand: {change}",
            )
        if change.old:
            edits.append(_edit(document.text, node.flow_style, *entries[change.old], change))
        else:
            start = node.value[0][0].start_mark
            between = ", " if node.flow_style else f"\n{' ' * start.column}"
            edits.append((start.index, start.index, f"{_key(change.new)}: {json.dumps(change.value)}{between}"))
    text = document.text
    for start, end, new in sorted(edits, reverse=True):
        text = text[:start] + new + text[end:]
    return text


def _named(node: Any) -> Iterator[tuple[str, tuple[Any, Any]]]:
    """Yield the name of each entry of a mapping, with the nodes of its key and its value."""
    for key, value in node.value:
        yield str(key.value), (key, value)


def _edit(text: str, in_braces: bool, key: Any, value: Any, change: Change) -> tuple[int, int, str]:
    """Return start and end of the text of an entry, and the text that replaces it."""
    start, end = key.start_mark.index, value.end_mark.index
    if change.new:
        as_before = text[key.end_mark.index : end]
        return start, end, _key(change.new) + (as_before if change.value is None else f": {json.dumps(change.value)}")
    if in_braces:
        comma = re.compile(r"\s*,\s*").match(text, end)
        return start, comma.end() if comma else end, ""
    whole = end if text[end - 1 : end] == "\n" else text.find("\n", end) + 1 or len(text)
    return text.rfind("\n", 0, start) + 1, whole, ""


def _key(name: str) -> str:
    """Return `name` as a key of YAML, in quotes if it has other characters than the names of settings."""
    return name if re.fullmatch(r"[A-Za-z][\w.-]*", name) else json.dumps(name)
