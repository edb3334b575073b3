"""References in values, which keep secrets out of the file.

    ${env:NAME}             the environment variable NAME
    ${file:PATH:KEY}        the value of KEY in the properties file PATH
    ${directory:PATH:KEY}   the content of the file KEY in the folder PATH

Names and syntax are those of Kafka Connect's configuration providers, so a connector's file works unchanged.
https://kafka.apache.org/documentation/#config_providers
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import javaproperties

from incsnap.config.listed import OPTIONS, owner
from incsnap.config.secrets import HIDDEN, is_masked, is_secret, without_password
from incsnap.errors import shorten

#: `${NAME}` without a provider, as shells, envsubst and Compose files replace it; `${var.name}` of Terraform,
#: `${db.name}` of Maven and Spring, and `${{ secrets.NAME }}` of GitHub's workflows. Kafka Connect replaces none.
_PLACEHOLDER = re.compile(r"\$\{([A-Za-z_][\w.-]*)\}|\$\{\{\s*([A-Za-z_][\w.-]*)\s*\}\}")
#: Objects that hold the variables of Terraform and GitHub.
_HOLDER = re.compile(r"^(vars?|env|secrets)\.")
#: Whole values of examples: `<host>`, `<host>:9092`, `$HOST`.
_TO_FILL_IN = re.compile(r"<[^<>]+>(?::\d+)?|\$([A-Z][A-Z0-9_]*)")
#: Parts of values: `{{ host }}` of templates, `$(HOST)` of Kubernetes and make.
_PART_TO_FILL_IN = re.compile(r"\$?\{\{[^{}]+\}\}|\$\(([A-Z][A-Z0-9_]*)\)")
#: Beginnings of settings whose values may look like a template and be none.
_TEXTS = (*OPTIONS, "spark.")
#: Ends of options of transforms that Kafka Connect and Debezium fill in themselves: groups of a regular expression in
#: replacements, `${topic}` in the format of TimestampRouter, and expressions of Groovy in scripts.
_FILLED_IN = (".replacement", ".topic.format", ".condition", ".topic.expression")
#: Beginnings of the classes of Kafka Connect's and Debezium's transforms.
_CLASSES_OF_TRANSFORMS = ("org.apache.kafka.connect.transforms.", "io.debezium.transforms.")
_REFERENCE = re.compile(r"\$\{(?P<provider>[A-Za-z][A-Za-z0-9_.-]*):(?P<place>[^{}]*)\}")
#: First characters behind the colon of a shell's `${NAME:-default}`. The default may be a password.
_DEFAULTS = ("-", "=", "?", "+")


#: Kafka's own providers, by class name.
_CLASSES = {"EnvVarConfigProvider": "env", "FileConfigProvider": "file", "DirectoryConfigProvider": "directory"}
_PROVIDERS = {name: name for name in _CLASSES.values()}


class UnresolvedError(Exception):
    """An error for a reference that cannot be resolved. The text names the reference and the reason."""


class UnfilledError(UnresolvedError):
    """An error for a value that is still to be filled in: a placeholder, a missing variable or file, or a reference of
    an unknown provider.
    """


def is_reference(text: str) -> bool:
    """Return True if `text` contains a reference."""
    return _REFERENCE.search(text) is not None


def is_only_references(text: str) -> bool:
    """Return True if `text` is references alone, with no letter and no digit between them.

    Such a text may be shown. A text with more in it may hold a part of a secret, and so may the
    default in a shell's `${NAME:-default}`.
    """
    if any(match["place"].startswith(_DEFAULTS) for match in _REFERENCE.finditer(text)):
        return False
    return is_reference(text) and not any(character.isalnum() for character in _REFERENCE.sub("", text))


def variable_for(name: str) -> str:
    """Return a reference to the environment variable that is named after the setting `name`.

    >>> variable_for("database.password")
    '${env:DATABASE_PASSWORD}'
    """
    return f"${{env:{re.sub('[^A-Z0-9]', '_', name.upper())}}}"


def shown_value(value: str, *, hidden: bool) -> str:
    """Return `value` as people may see it. With `hidden` only references and an empty value are shown."""
    if hidden and value and not is_only_references(value):
        return HIDDEN
    return without_password(value)


def placeholder(name: str, value: str, settings: Mapping[str, str]) -> str:
    """Return the first placeholder in the value of the setting `name` that nobody has filled in, or "" for none.

    `settings` are those of the file. They say of which class a transform is.
    """
    left = None if _is_filled_in(name, settings) else _PLACEHOLDER.search(value)
    return left[0] if left else ""


def with_variables(value: str) -> str:
    """Return `value` with references to the environment in place of placeholders.

    >>> with_variables("${HOST}:${db.port}, ${{ secrets.NAME }}")
    '${env:HOST}:${env:DB_PORT}, ${env:NAME}'
    """
    return _PLACEHOLDER.sub(_variable, value)


def _variable(left: re.Match[str]) -> str:
    """Return the reference to the environment that stands for a match of `_PLACEHOLDER`."""
    name = _HOLDER.sub("", left[1] or left[2])
    return f"${{env:{name}}}" if name.isidentifier() else variable_for(name)


def _is_filled_in(name: str, settings: Mapping[str, str]) -> bool:
    """Return True if the setting `name` may have `${NAME}` in its value: its owner fills it in, or nothing reads it."""
    if not name.startswith(OPTIONS):
        return name.startswith("spark.")
    runs = owner(name, settings)
    class_ = settings.get(f"{runs}.type", "").strip()
    if not runs or ("." in class_ and not class_.startswith(_CLASSES_OF_TRANSFORMS)):
        return True  # The options of other vendors are not known.
    # The replacement of a MaskField is the new value itself.
    return name.endswith(_FILLED_IN) and "MaskField" not in class_


def is_withheld(name: str, value: str) -> bool:
    """Return True if `value` is asterisks in the place of a secret. An option of a transform may be asterisks."""
    return is_secret(name) and is_masked(value) and not name.startswith(OPTIONS)


def unfilled(name: str, value: str, settings: Mapping[str, str]) -> str:
    """Return what is to be written in place of the value of the setting `name` that nobody has filled in, or "".

    A password may be any text, so a password is unfilled only with a placeholder in `${}` or asterisks alone.
    `settings` are those of the file.
    """
    if is_withheld(name, value):
        return f"only asterisks, which stand for a value that is not shown. Write its value, or {variable_for(name)}"
    if left := placeholder(name, value, settings):
        return f"{left} is not filled in. Write its value, or {with_variables(left)}"
    if name.startswith(_TEXTS) or is_secret(name):
        return ""
    open_ = _TO_FILL_IN.fullmatch(value) or _PART_TO_FILL_IN.search(value)
    if open_ is None:
        return ""
    return f"{shorten(open_[0])} is not filled in. Write its value" + (f", or ${{env:{open_[1]}}}" if open_[1] else "")


def providers_of(worker: Mapping[str, str]) -> dict[str, str]:
    """Return the provider names that a worker's file declares, each with its kind: env, file or directory.

    Providers of other classes are left out.
    """
    names = [name.strip() for name in worker.get("config.providers", "").split(",")]
    classes = {name: worker.get(f"config.providers.{name}.class", "").strip().rpartition(".")[2] for name in names}
    return {name: _CLASSES[class_] for name, class_ in classes.items() if class_ in _CLASSES}


def resolve(text: str, environment: Mapping[str, str] | None = None, providers: Mapping[str, str] | None = None) -> str:
    """Return `text` with all references replaced. The inserted values are not searched for references.

    `providers` adds names from `providers_of` to env, file and directory. Raise UnfilledError if a variable or a file
    is missing or the provider is unknown, and UnresolvedError if a reference cannot be resolved for another reason.
    """
    names = os.environ if environment is None else environment
    kinds = {**_PROVIDERS, **(providers or {})}

    def replace(match: re.Match[str]) -> str:
        """Return the value that a reference leads to. Raise UnfilledError or UnresolvedError if there is none."""
        kind, place = kinds.get(match["provider"]), match["place"]
        if kind == "env":
            if place not in names:
                raise UnfilledError(f"{match[0]}: the environment has no variable {place}")
            return names[place]
        if kind is not None:
            path, separator, key = place.rpartition(":")
            if not separator or not path or not key:
                raise UnresolvedError(f"{match[0]}: write it as ${{{match['provider']}:PATH:KEY}}")
            return _from_file(match[0], Path(path), key) if kind == "file" else _read(match[0], Path(path, key))
        if place.startswith(_DEFAULTS):
            name = match["provider"]
            raise UnfilledError(f"${{{name}:{place[0]}...}} is a shell's default. Write its value, or ${{env:{name}}}")
        raise UnfilledError(
            f"{match[0]}: the provider {match['provider']!r} is not known; {', '.join(kinds)} are. Mount what it"
            " leads to, and write ${file:PATH:KEY} (a properties file) or ${directory:PATH:KEY} (a file for each key)"
        )

    return _REFERENCE.sub(replace, text)


def resolved(values: Mapping[str, str], providers: Mapping[str, str]) -> dict[str, str]:
    """Return settings with references replaced. A value that cannot be resolved stays as it is."""

    def value_of(text: str) -> str:
        with suppress(UnresolvedError):
            return resolve(text, providers=providers)
        return text

    return {name: value_of(text) for name, text in values.items()}


def _read(reference: str, path: Path) -> str:
    """Return the content of a file. Raise UnfilledError if it cannot be read, UnresolvedError if it is no text."""
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise UnfilledError(f"{reference}: {path} cannot be read ({error.strerror})") from None
    except UnicodeDecodeError:
        raise UnresolvedError(f"{reference}: {path} is not text in UTF-8") from None


def _from_file(reference: str, path: Path, key: str) -> str:
    """Return the value of `key` in the properties file `path`. Raise UnfilledError or UnresolvedError."""
    try:
        values = javaproperties.loads(_read(reference, path))
    except ValueError:
        raise UnresolvedError(f"{reference}: {path} is not a properties file") from None
    if key not in values:
        raise UnresolvedError(f"{reference}: {path} has no key {key}")
    return str(values[key])
