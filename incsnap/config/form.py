"""The language of a settings file: properties, JSON or YAML."""

from __future__ import annotations

import json
import re
from enum import Enum

import yaml

from incsnap.config.job_file import StrPath

#: The beginning of JSON.
JSON = re.compile(r"\s*(\[\s*)?\{")
#: A line that only YAML has: the kind of a resource, or the key of an object that holds settings.
_YAML = re.compile(
    r"^[ \t]*(kind\s*:\s*\S|(-\s+)?(config|connectorConfiguration|debezium)\s*:\s*(\{.*)?$)",
    re.MULTILINE,
)
#: A setting behind a colon and a blank, which properties may have too, and one behind an equals sign.
_COLON = re.compile(r"^[ \t]*connector\.class: +\S", re.MULTILINE)
_EQUALS = re.compile(r"^[ \t]*[A-Za-z][\w.-]*[ \t]*=", re.MULTILINE)
#: A text that goes on behind its line, in a block or in quotes of YAML.
_LONG_TEXT = re.compile(r':[ \t]+([|>][+-]?\d?[+-]?[ \t]*(#.*)?|"(\\.|[^"\\\n])*\\)$', re.MULTILINE)
#: A line that only properties have: a comment behind `!`, or a setting that goes on behind its backslash. `!!str` is a
#: type of YAML, and comments of both languages may end with a backslash.
_PROPERTIES = re.compile(r"^[ \t]*!(?![!\w])|^(?![ \t]*#).*\\$", re.MULTILINE)
#: The beginning of a YAML document in braces, and a name without quotes, which JSON does not allow.
_BRACES = re.compile(r"\s*((#|---)[^\n]*\n\s*)*([\[-]\s*)?\{")
_BARE_NAME = re.compile(r"[{,]\s*(#[^\n]*\n\s*)*[A-Za-z][\w.-]*\s*:(\s|$)")


class Form(Enum):
    """The language of a settings file."""

    PROPERTIES = "a properties file"
    JSON = "JSON"
    YAML = "YAML"


def form_of(path: StrPath, text: str) -> Form:
    """Return the language of `text`. Braces with a name without quotes are YAML, if YAML's parser reads them."""
    if _BRACES.match(text) and _BARE_NAME.search(text) and not _is_json(text) and _is_yaml(text):
        return Form.YAML
    if JSON.match(text):
        return Form.JSON
    is_yaml = _YAML.search(text) or (_COLON.search(text) and _is_yaml_with_colons(path, text))
    return Form.YAML if is_yaml else Form.PROPERTIES


def _is_yaml_with_colons(path: StrPath, text: str) -> bool:
    """Return True if a text with `connector.class: ` is YAML, and False if it is a properties file."""
    if _LONG_TEXT.search(text) or str(path).endswith((".yaml", ".yml")):
        return True
    if str(path).endswith(".properties") or _PROPERTIES.search(text):
        return False
    return not _EQUALS.search(text) or _is_yaml(text)


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def _is_yaml(text: str) -> bool:
    try:
        return any(node is not None for node in yaml.compose_all(text, Loader=yaml.SafeLoader))
    except (yaml.YAMLError, RecursionError):
        return False
