"""A reader of settings by their declarations or kinds. It collects all problems."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from incsnap.config.declarations import PREFIXES, SETTINGS
from incsnap.config.declarations.kinds import COLUMNS, FLAG, REGEXES, Kind
from incsnap.config.listed import OPTIONS, owner
from incsnap.config.patterns import pattern_problem
from incsnap.config.references import UnfilledError, UnresolvedError, is_reference, resolve, unfilled
from incsnap.config.secrets import HIDDEN, is_secret, without_password, without_salt
from incsnap.config.without_effect import reason_of
from incsnap.errors import shorten
from incsnap.transforms.replacement import parsed
from signals.regex import any_matches

_SANITIZED = "custom.sanitize.pattern"

#: An option of converters and transforms that changes nothing here.
NULLS = "replace.null.with.default"


def _keeps_blanks(name: str) -> bool:
    """Whether blanks around a value count. Debezium keeps them in MySQL's passwords, Kafka's clients trim them."""
    return name.startswith("database.") and is_secret(name)


def _parts(text: str) -> set[str]:
    """Return the value `text` and the parts of a list. One or two characters are no secret, and words have them."""
    return {part for part in (text, *map(str.strip, text.split(","))) if len(part) > 2}


class SettingsReader:
    """A reader of the properties of a file.

    After a problem each method returns a valid value, so that one pass finds all problems.
    """

    def __init__(
        self,
        properties: Mapping[str, str],
        environment: Mapping[str, str] | None = None,
        providers: Mapping[str, str] | None = None,
        *,
        has_worker: bool = False,
    ) -> None:
        self.has_worker = has_worker  #: whether the file of a worker was given too
        self.problems: list[str] = []
        #: Those of the problems that only say that a value is still to be filled in (`UnfilledError`).
        self.unfilled: list[str] = []
        self.warnings: list[str] = []
        self._raw = {name: value if _keeps_blanks(name) else value.strip() for name, value in properties.items()}
        self._values: dict[str, str] = {}
        self._read: dict[str, Any] = {}
        self._unresolved: set[str] = set()
        #: Settings that were read and have no effect, each with a note.
        self.idle: dict[str, str] = {}
        #: Default values of all settings that were read.
        self.defaults: dict[str, str] = {}
        for name, value in self._raw.items():
            try:
                if (name in SETTINGS or name.startswith(PREFIXES)) and (to_do := unfilled(name, value, self._raw)):
                    raise UnfilledError(to_do)
                self._values[name] = resolve(value, environment, providers)
            except UnresolvedError as error:
                # A reference that only Kafka Connect can resolve does no harm in a setting that has no effect here.
                is_idle = name.startswith(OPTIONS) and not owner(name, self._raw)
                if is_idle or (reason_of(name) and name != "connector.class"):
                    self._values[name] = value
                    continue
                self._unresolved.add(name)
                self.problems.append(f"{without_salt(name)}: {error}")
                if isinstance(error, UnfilledError):
                    self.unfilled.append(self.problems[-1])

    def hides(self, name: str) -> bool:
        """Return True if the value of `name` must not be shown: a secret, or a match of `custom.sanitize.pattern`.

        As in Debezium, the pattern must match the whole name, in any letter case.
        """
        pattern = self._values.get(_SANITIZED, "")
        if is_secret(name) or not pattern:
            return is_secret(name)
        # Without a pattern that can be read, no value is shown.
        return pattern_problem(pattern) is not None or any_matches((pattern,), name, ignore_case=True)

    def without_hidden(self, problem: str) -> str:
        """Return `problem`, which begins with the name of its setting, without the value that a pattern hides.

        No problem shows a secret in the first place.
        """
        name, _, rest = problem.partition(":")
        if is_secret(name) or not self.hides(name):
            return problem
        values = {each for text in (self._raw.get(name, ""), self._values.get(name, "")) for each in _parts(text)}
        for value in sorted(values, key=len, reverse=True):
            rest = rest.replace(value, HIDDEN)
        return f"{name}:{rest}"

    def names(self) -> list[str]:
        """Return all names in the file."""
        return list(self._raw)

    def given(self, name: str) -> bool:
        """Return True if the file has a value for `name`. As in Debezium, an empty value counts as not given."""
        return bool(self._raw.get(name))

    def problem(self, name: str, allowed: str) -> None:
        """Add the problem "name: 'value' is not ALLOWED".

        A secret is not shown, and a reference is shown unresolved. A reference that cannot be resolved is a problem
        already, and gets no second one.
        """
        if name in self._unresolved:
            return
        if self.hides(name):
            shown = "the value"
        elif is_reference(self._raw.get(name, "")):
            shown = f"what {shorten(without_password(self._raw[name]))} holds"
        else:
            shown = repr(shorten(without_password(self._values.get(name, ""))))
        self.problems.append(f"{name}: {shown} is not {allowed}")

    def unresolved(self, name: str) -> str:
        """Return the value as the file has it, with references unresolved. So secrets behind references stay hidden."""
        return self._raw.get(name, "")

    def text(self, name: str, default: str = "") -> str:
        """Return the value with references resolved, or `default`."""
        self.defaults.setdefault(name, default)
        return self._values.get(name) or default

    def required(self, name: str, meaning: str) -> str:
        """Return the value, or "" with a problem. `meaning` tells the user what the setting is for."""
        value = self.text(name)
        if not value and name not in self._unresolved:
            self.problems.append(f"{name}: missing; {meaning}")
        return value

    def __getitem__(self, name: str) -> Any:
        """Return the value of a declared setting, or its default. Each setting adds its problem only once."""
        if name not in self._read:
            self._read[name] = self.read(name, SETTINGS[name].kind, SETTINGS[name].default)
        return self._read[name]

    def read(self, name: str, kind: Kind, default: str = "") -> Any:
        """Return the value of a setting, or that of the text `default`. Add a problem if `kind` does not allow it."""
        text = self.text(name)
        self.defaults[name] = default
        try:
            value = kind.value(text or default)
        except ValueError as error:
            self.problem(name, str(error) or kind.allowed)
            return kind.value(default)
        return tuple(each for each in value if self.is_regex(name, each)) if kind in (REGEXES, COLUMNS) else value

    def read_nulls(self, start: str, default: str) -> None:
        """Read the option `NULLS` of a converter or transform, whose names begin with `start`, and say its effect.

        It has none: a NULL stays NULL, so that consumers can tell a NULL from the DEFAULT.
        """
        name = start + NULLS
        if self.read(name, FLAG, default) and self.given(name):
            self.idle[name] = note = "a NULL stays NULL, also in a column with a DEFAULT"
            self.warnings.append(f"{name}=true has no effect: {note}")

    def is_regex(self, name: str, pattern: str) -> bool:
        """Return True if `pattern` is a Java regular expression; otherwise add a problem for the setting `name`."""
        problem = pattern_problem(pattern)
        if problem:
            self.problems.append(f"{name}: {pattern!r} is not a regular expression: {problem}")
        return problem is None

    def regex(self, name: str) -> str:
        """Return the Java regex in the setting `name`. If it is missing or invalid, add a problem and return ""."""
        regex = self.required(name, "a Java regex")
        return regex if regex and self.is_regex(name, regex) else ""

    def replacement(self, name: str, regex: str) -> str:
        """Return the text in the setting `name` that replaces matches of `regex`; `$1` in it stands for the first
        group.

        If the text is missing or invalid, add a problem and return "". A `regex` that is "" has a problem of its own.
        """
        replacement = self.required(name, "the text that replaces the match, with $1 for groups")
        try:
            parsed(regex, replacement if regex else "")
        except ValueError as error:
            self.problems.append(f"{name}: {replacement!r} is not a replacement: {error}")
            return ""
        return replacement

    def prefixed(self, prefix: str) -> dict[str, str]:
        """Return the values whose names begin with `prefix`, with `prefix` removed from the names."""
        return {name[len(prefix) :]: value for name, value in self._values.items() if name.startswith(prefix)}
