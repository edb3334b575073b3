"""Applying changes of settings to the text of a settings file, so that its order and its comments stay."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from io import StringIO
from typing import Any

import javaproperties
import yaml

from incsnap.config.corrections import Change
from incsnap.config.documents import Document, read_text
from incsnap.config.form import Form
from incsnap.config.secrets import without_salt
from incsnap.errors import ConfigError

#: An escaped character, and those that need no escape in a value.
_ESCAPE, _PLAIN = re.compile(r"\\(.)"), ":=#!"
#: The anchor of a YAML value, which may stand behind a tag.
_ANCHOR = re.compile(r"(?:!\S*\s+)?(&\S+\s)")
#: Characters that are a break of a line in YAML, or that must not stand in it. JSON takes them as they are.
_ESCAPED_IN_YAML = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")
_INDENT = re.compile(r"[\[{]\s*?\n([ \t]+)\S")


def rewritten(document: Document, changes: Sequence[Change]) -> str:
    """Return the text of `document` with `changes`. The text has the form of the old one.

    Properties and YAML keep their comments and their order. JSON keeps its order. Raise ConfigError if a setting stands
    where it cannot be replaced, for example behind a merge key of YAML, or if other settings would change too.
    """
    if not changes:
        return document.text
    if document.values.keys() == document.outside:
        raise ConfigError("the file has no object with settings", f"Correct it by hand: {changes[0]}")
    if document.form is Form.PROPERTIES:
        text = "".join(_properties(document.text, changes))
    else:
        text = _json(document, changes) if document.form is Form.JSON else _yaml(document, changes)
    if not _has(text, document.form, _changed(document.values, changes)):
        raise ConfigError(
            "the file cannot be rewritten, because its settings depend on each other, such as by an alias of YAML",
            f"Correct it by hand: {'; '.join(map(str, changes))}",
        )
    return text


def _has(text: str, form: Form, values: Mapping[str, str]) -> bool:
    """Return True if `text` is a settings file of the language `form` with these values."""
    try:
        return read_text(text, "", form=form).values == values
    except ConfigError:
        return False


def _changed(values: Mapping[str, str], changes: Sequence[Change]) -> dict[str, str]:
    """Return `values` with `changes`."""
    by_name = {change.old: change for change in changes if change.old}
    changed = {}
    for name, value in values.items():
        change = by_name.get(name, Change(name, name, None, ""))
        if change.new:
            changed[change.new] = value if change.value is None else change.value
    return {**changed, **{change.new: change.value or "" for change in changes if not change.old}}


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
    """Yield names and values of `settings` with `changes`. A null gives way to a setting that gets its name."""
    by_name = {change.old: change for change in changes if change.old}
    written = {change.new for change in changes}
    for name, value in settings.items():
        change = by_name.get(name)
        if change is None:
            if value is not None or name not in written:
                yield name, value
        elif change.new:
            yield change.new, value if change.value is None else change.value
    yield from ((change.new, change.value) for change in changes if not change.old)


def _yaml(document: Document, changes: Sequence[Change]) -> str:
    """Return a YAML document with `changes`. Only the keys and values of changed settings are replaced."""
    node: Any = list(yaml.compose_all(document.text, Loader=_Composer))[int(document.place[0])]
    for step in document.place[1:]:
        node = node.value[step] if isinstance(step, int) else dict(_named(node))[step][1]
    entries = list(_named(node))
    written = {change.new for change in changes} - {change.old for change in changes}
    # A null is no setting. It gives way to a setting that gets its name.
    nulls = {name for name, (_, value) in entries if name in written and value.tag == "tag:yaml.org,2002:null"}
    removed = {change.old for change in changes if not change.new} | nulls
    edits = []
    for change in (*changes, *(Change(name, "", None, "") for name in nulls)):
        # A name may stand more than once.
        own = [entry for name, entry in entries if name == change.old]
        if change.old and not own:
            raise ConfigError(
                f"{without_salt(change.old)} cannot be replaced: it does not stand among the settings themselves",
                f"Correct it by hand: {change}",
            )
        if change.old:
            edits += [_edit(document.text, node.flow_style, *entry, change) for entry in own]
        else:
            # The line of a removed entry goes away with whatever is added in front of it.
            first = next((key for name, (key, _) in entries if name not in removed), node.value[0][0])
            start = first.start_mark
            between = ", " if node.flow_style else f"\n{' ' * start.column}"
            edits.append((start.index, start.index, f"{_key(change.new)}: {_quoted(change.value or '')}{between}"))
    text = document.text
    for start, end, new in sorted(edits, reverse=True):
        text = text[:start] + new + text[end:]
    return text


class _Composer(yaml.SafeLoader):
    """A loader of YAML that composes an alias to a node which stands where the alias stands."""

    def compose_node(self, parent: Any, index: Any) -> Any:
        """Return the next node. PyYAML itself returns the anchor's node for an alias."""
        event = self.peek_event()  # type: ignore[no-untyped-call]
        node: Any = super().compose_node(parent, index)
        if isinstance(event, yaml.AliasEvent):
            node = copy(node)
            node.start_mark, node.end_mark = event.start_mark, event.end_mark
        return node


def _named(node: Any) -> Iterator[tuple[str, tuple[Any, Any]]]:
    """Yield the name of each entry of a mapping, with the nodes of its key and its value."""
    for key, value in node.value:
        yield str(key.value), (key, value)


def _edit(text: str, in_braces: bool, key: Any, value: Any, change: Change) -> tuple[int, int, str]:
    """Return start and end of the text of an entry, and the text that replaces it."""
    start, end = key.start_mark.index, value.end_mark.index
    if change.new and change.value is None:
        return start, key.end_mark.index, _key(change.new)
    if change.value is not None and change.new:
        old = text[value.start_mark.index : end]
        anchor = _ANCHOR.match(old)
        # A text in a block, behind | or >, ends with its line.
        line_end = "\n" if old.endswith("\n") else ""
        return start, end, f"{_key(change.new)}: {anchor[1] if anchor else ''}{_quoted(change.value)}{line_end}"
    if in_braces:
        comma = re.compile(r"\s*,\s*").match(text, end)
        return start, comma.end() if comma else end, ""
    whole = end if text[end - 1 : end] == "\n" else text.find("\n", end) + 1 or len(text)
    return text.rfind("\n", 0, start) + 1, whole, ""


def _key(name: str) -> str:
    """Return `name` as a key of YAML, in quotes if it has other characters than the names of settings."""
    return name if re.fullmatch(r"[A-Za-z][\w.-]*", name) else _quoted(name)


def _quoted(text: str) -> str:
    """Return `text` as YAML in quotes. Characters that YAML does not take as they are get escapes.

    Both halves of a pair in `\\ud83d\\ude00`, as `json.dumps` writes it by default, are no characters of YAML.
    """
    return _ESCAPED_IN_YAML.sub(lambda each: f"\\u{ord(each[0]):04x}", json.dumps(text, ensure_ascii=False))
