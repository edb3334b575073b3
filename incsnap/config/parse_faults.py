"""Sentences about settings files that cannot be parsed. No sentence shows a value, because it may be a password."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

import javaproperties
import yaml

from incsnap.config.job_file import StrPath
from incsnap.errors import ConfigError

#: A text that a message of YAML's parser quotes; single characters, also escaped ones, tell nobody a password.
_QUOTED = re.compile(r"""(['"])(?!\\?.\1).*\1""", re.DOTALL)
#: A name of JSON in a file without the brace in front, and a name of an environment variable.
_JSON_NAME, _VARIABLE = re.compile(r'\s*"[^"\n]*"\s*:'), re.compile(r"[A-Z][A-Z0-9_]*")
#: A text in quotes, and the beginning of a place that Helm or Jinja fills in.
_IN_QUOTES, _PLACE = re.compile(r"\"(\\.|[^\"\\\n])*\"|'[^'\n]*'"), re.compile(r"\{\{|\{%")
#: A comment, except for the first line of a script.
_COMMENT = re.compile(r"(?<!\S)(#(?!!)|//).*")
#: Lines of scripts: of a shell with a here-document, of ksqlDB, and of an HTTP client.
_SCRIPT = re.compile(
    r"^#!|<<-?\s*['\"\\A-Za-z_]|^\s*(?i:CREATE)\s+(?i:SOURCE|SINK)\s|^(GET|POST|PUT|PATCH)\s+\S", re.MULTILINE
)


def fault(error: Exception) -> str:
    """Return what a parser found, without the text of the file that it found it in: this may be a password."""
    if isinstance(error, json.JSONDecodeError):
        return str(error)
    if isinstance(error, yaml.MarkedYAMLError):
        mark = error.problem_mark or error.context_mark
        at = f" at line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        return plain(_QUOTED.sub("...", error.problem or error.context or "it cannot be read")) + at
    if isinstance(error, javaproperties.InvalidUEscapeError):
        return "a \\u that no four hexadecimal digits follow"
    if isinstance(error, yaml.YAMLError):
        return "it holds characters that YAML does not allow"
    return "a value does not fit its tag, such as !!int"


def repair(error: Exception, otherwise: str) -> str:
    """Return what the user can do about a parser's `error`: `otherwise`, or more for a fault in JSON."""
    if not isinstance(error, json.JSONDecodeError):
        return otherwise
    if error.msg == "Extra data":
        return "Give each job a file of its own, with one object of JSON and nothing behind it."
    return "Correct the JSON there. It has no comments. A shell's script is no JSON: write what the script sends."


def refuse_other_languages(path: StrPath, text: str, names: Mapping[str, str]) -> None:
    """Raise ConfigError if `text`, read as properties with `names`, is a file of another kind."""
    if "curl" in names:
        raise ConfigError(f"{path} is a command of curl", "Write the JSON that it sends as the file.")
    if _JSON_NAME.match(text):
        raise ConfigError(f"{path} is JSON without its brace {{", "Write the settings in one object: {...}.")
    if any(name.startswith(("{{", "{%")) for name in names):
        refuse_generators(path, text)
    if any(name.startswith(('"', "'", '{"')) for name in names):
        refuse_generators(path, text)
        raise ConfigError(
            f"{path} is not a properties file: names stand in quotes",
            "Comments are not JSON: remove them. Write settings of Terraform as name=value.",
        )
    if names and all(map(_VARIABLE.fullmatch, names)):
        raise ConfigError(
            f"{path} holds environment variables, not settings",
            "Write a file with Debezium's names, as database.hostname=db. A value may be ${env:NAME}.",
        )


def refuse_generators(path: StrPath, text: str) -> None:
    """Raise ConfigError if `text`, which is no settings file, is a template or a script that makes one."""
    # Quotes of nothing stay, because they may be those of a here-document.
    bare = _COMMENT.sub("", _IN_QUOTES.sub("''", text))
    if _PLACE.search(bare):
        raise ConfigError(f"{path} is a template", "Name the file that it makes, as `helm template` prints it.")
    if _SCRIPT.search(bare):
        raise ConfigError(
            f"{path} is a script",
            "Write the settings that it sends as the file: its JSON, or one name=value on each line.",
        )


def plain(text: str) -> str:
    """Return `text` with lone surrogates escaped, because terminals and logs cannot encode them."""
    return text.encode(errors="backslashreplace").decode()
