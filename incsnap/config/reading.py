"""Asking a file for values, one method per kind, and remembering every problem instead of the first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from incsnap.config.patterns import pattern_problem
from incsnap.config.references import UnresolvedError, is_reference, resolve
from incsnap.config.secrets import is_secret
from incsnap.errors import shorten


def _keeps_blanks(name: str) -> bool:
    """Whether blanks around a value count: Debezium takes MySQL's passwords as they are, Kafka's clients trim them."""
    return name.startswith("database.") and is_secret(name)


class SettingsReader:
    """Every method returns something usable after a problem, so that all others are found in the same pass."""

    def __init__(
        self,
        properties: Mapping[str, str],
        environment: Mapping[str, str] | None = None,
        providers: Mapping[str, str] | None = None,
    ) -> None:
        self.problems: list[str] = []
        self.warnings: list[str] = []
        self._raw = {name: value if _keeps_blanks(name) else value.strip() for name, value in properties.items()}
        self._values: dict[str, str] = {}
        self._unresolved: set[str] = set()
        #: Names that were looked at and have no effect, of which there are warnings, with what one must know of each.
        self.idle: dict[str, str] = {}
        #: What was asked for, with what holds where it is not given.
        self.defaults: dict[str, str] = {}
        for name, value in self._raw.items():
            try:
                self._values[name] = resolve(value, environment, providers)
            except UnresolvedError as error:
                self._unresolved.add(name)
                self.problems.append(f"{name}: {error}")

    def names(self) -> list[str]:
        return list(self._raw)

    def given(self, name: str) -> bool:
        """An empty value counts as not given, as in Debezium."""
        return bool(self._raw.get(name))

    def problem(self, name: str, allowed: str) -> None:
        """``allowed`` completes "name: 'value' is not ...". A value is not shown when it is or may be a secret."""
        if is_secret(name):
            shown = "the value"
        elif is_reference(self._raw.get(name, "")):
            shown = f"what {shorten(self._raw[name])} holds"
        else:
            shown = repr(shorten(self._values.get(name, "")))
        self.problems.append(f"{name}: {shown} is not {allowed}")

    def written(self, name: str) -> str:
        """The value as the file has it: references are not followed, and so it tells no secret but its own."""
        return self._raw.get(name, "")

    def text(self, name: str, default: str = "") -> str:
        self.defaults.setdefault(name, default)
        return self._values.get(name) or default

    def required(self, name: str, meaning: str) -> str:
        value = self.text(name)
        if not value and name not in self._unresolved:
            self.problems.append(f"{name}: missing; {meaning}")
        return value

    def integer(self, name: str, default: int, low: int, high: int = 2**63 - 1) -> int:
        text = self.text(name)
        self.defaults[name] = str(default)
        if not text:
            return default
        try:
            value = int(text)
        except ValueError:
            value = low - 1
        if not low <= value <= high or "_" in text:
            limit = f"from {low} to {high}" if high < 2**63 - 1 else f"from {low} on"
            self.problem(name, f"a whole number {limit}")
            return default
        return value

    def flag(self, name: str, default: bool) -> bool:
        text = self.text(name).lower()
        self.defaults[name] = str(default).lower()
        if text in ("true", "false"):
            return text == "true"
        if text:
            self.problem(name, "true or false")
        return default

    def choice(self, name: str, default: str, allowed: Sequence[str], not_yet: Sequence[str] = ()) -> str:
        value = self.text(name, default).lower()
        if value in allowed:
            return value
        listed = " or ".join(allowed)
        if value in not_yet:
            self.problem(name, f"possible yet; allowed now: {listed}")
        elif value not in allowed:
            self.problem(name, f"one of: {', '.join((*allowed, *not_yet))}")
        return default

    def sound(self, name: str, pattern: str) -> bool:
        """Is ``pattern``, of the setting ``name``, a Java regular expression? A problem where it is none."""
        problem = pattern_problem(pattern)
        if problem:
            self.problems.append(f"{name}: {pattern!r} is not a regular expression: {problem}")
        return problem is None

    def prefixed(self, prefix: str) -> dict[str, str]:
        return {name[len(prefix) :]: value for name, value in self._values.items() if name.startswith(prefix)}
