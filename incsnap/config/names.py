"""The names of settings of Debezium and Kafka Connect that have no effect here, and what an unknown name may mean.

A connector's file must work unchanged. So these settings are listed in one warning and not refused.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from dataclasses import dataclass

from incsnap.config.declarations import PREFIXES, SETTINGS
from incsnap.config.older_names import LISTS
from incsnap.config.without_effect import WITHOUT_EFFECT, reason_of


def words(text: str) -> frozenset[str]:
    """Return the words of `text`. A long list is easier to read as text than as literals."""
    return frozenset(text.split())


#: A job cannot start without these settings. So a misspelling of one is a problem, not a warning.
_NEEDED = {"checkpoint.location", *(name for name, setting in SETTINGS.items() if setting.is_needed)}
#: Without these settings more data is sent than the user wants. So a misspelling of one is a problem as well.
NARROWING = {
    f"{kind}.{side}.list": f" Without it, {kind}s would be captured that should not be"
    for kind in ("database", "table", "column")
    for side in ("include", "exclude")
} | {
    "column.mask.*": " Without it, values would be sent that should be masked",
    "column.truncate.*": " Without it, values would be sent that should be cut",
}
#: Settings that mask or cut columns -> the parts of a name by which it is meant to be one of them.
_RULES = {
    "column.mask.*": re.compile(r"^columns?\.mask|\.with\.salt\.|\.with\.\d+\.chars$"),
    "column.truncate.*": re.compile(r"^columns?\.truncat|\.to\.\d+\.chars$"),
}

#: Words that follow in the names of such settings.
_IN_RULES = {"with", "to", "hash", "chars", "salt"}
#: The beginning of a name that is no misspelt one.
_OFF = re.compile(r"[^A-Za-z]")


@dataclass(frozen=True, slots=True)
class UnusedNames:
    """Names of a file that incsnap does not obey."""

    foreign: tuple[str, ...]  #: names of Debezium or Kafka Connect that have no effect here
    unknown: tuple[tuple[str, str | None], ...]  #: unknown names, each with the obeyed name that may be meant, or None


def unused_names(names: Iterable[str], converters: Iterable[str] = ()) -> UnusedNames:
    """Return those of `names` that incsnap does not obey.

    Names that begin with one of `converters` and a dot are obeyed.
    """
    obeyed = (*PREFIXES, *(f"{name}." for name in converters))
    foreign: list[str] = []
    unknown: list[tuple[str, str | None]] = []
    for name in sorted(names):
        if name in WITHOUT_EFFECT:
            foreign.append(name)
        elif name in SETTINGS or name.startswith(obeyed):
            continue
        elif reason_of(name):
            foreign.append(name)
        else:
            unknown.append((name, meant(name)))
    return UnusedNames(tuple(foreign), tuple(unknown))


def is_important(name: str) -> bool:
    """Return True if a job cannot start without the setting `name`, or would send more than the user wants."""
    return name in _NEEDED or name in NARROWING


def meant(name: str) -> str | None:
    """Return the obeyed name closest to `name`, or None if none is close or the setting is switched off.

    The cutoff of 0.8 allows one or two wrong letters in twenty. JSON has no comments, so people put something before
    the name of a setting that must not count, as in `_table.include.list`. A misspelt name of Debezium 1 leads to the
    present one. A name that ends with `*` stands for the settings that begin so.
    """
    if _OFF.match(name) or name.lower().startswith("comment"):
        return None
    spelled = re.sub("[_-]", ".", name.lower())
    if rule := _rule(spelled):
        return rule
    known = (*SETTINGS, *LISTS)
    matches = difflib.get_close_matches(spelled, known, n=1, cutoff=0.8)
    return LISTS.get(matches[0], matches[0]) if matches else None


def _rule(spelled: str) -> str:
    """Return the settings of `_RULES` that a name means, or "". The first two words of the name may be misspelt."""
    if rule := next((rule for rule, parts in _RULES.items() if parts.search(spelled)), ""):
        return rule
    words = spelled.split(".")
    start = ".".join(words[:2]) + ".*"
    # `column.names` is as close to `column.mask`, and Debezium ignores it.
    close = difflib.get_close_matches(start, _RULES, n=1, cutoff=0.8) if _IN_RULES.intersection(words[2:]) else []
    return close[0] if close else ""
