"""The list that `incsnap config` shows: each setting with its origin and its effect."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from incsnap.config import converters
from incsnap.config.declarations import SETTINGS
from incsnap.config.names import unused_names
from incsnap.config.reader import SettingsReader
from incsnap.config.references import shown_value
from incsnap.config.secrets import without_salt
from incsnap.config.transforms import is_unread
from incsnap.config.without_effect import WITHOUT_EFFECT, reason_of

OBEYED, IDLE, REFUSED, UNKNOWN = "obeyed", "without effect", "refused", "unknown"
FILE, WORKER, DEFAULT = "file", "worker", "default"
_WORKERS = "the worker has the converter, with options of its own"


@dataclass(frozen=True, slots=True)
class Explained:
    """A setting as `incsnap config` shows it."""

    name: str  #: of the setting
    value: str  #: as written in the file; secrets, passwords in URLs and values of `UNKNOWN` settings are hidden
    origin: str  #: `FILE`, `WORKER` or `DEFAULT`
    fate: str  #: `OBEYED`, `IDLE`, `REFUSED` or `UNKNOWN`
    note: str = ""  #: a remark for the user; "" for none


@dataclass(frozen=True, slots=True)
class Origins:
    """The names of given settings, by the file that they come from."""

    own: frozenset[str]  #: of the connector's file
    inherited: frozenset[str]  #: of the worker's file
    idle: Mapping[str, str]  #: options in the connector's file that give way to the worker's, with their values


def explained(reader: SettingsReader, origins: Origins, problems: Iterable[str]) -> tuple[Explained, ...]:
    """Return all settings: first the given ones, then the defaults, both sorted by name.

    Call it after all settings were read from `reader`. `problems` are those of all settings, read alone and combined.
    """
    unused = unused_names(reader.names(), converters.names(reader))
    foreign, unknown = set(unused.foreign), dict(unused.unknown)
    notes = {problem.partition(":")[0]: problem.partition(": ")[2] for problem in problems}
    given = [
        Explained(name, shown_value(value, hidden=reader.hides(name)), FILE, IDLE, _WORKERS)
        for name, value in origins.idle.items()
    ]
    for name in {*origins.own, *origins.inherited}:
        origin = WORKER if name in origins.inherited else FILE
        value = reader.unresolved(name)
        value = shown_value(value, hidden=reader.hides(name) or name in unknown)
        shown = without_salt(name)
        # A problem of a whole transform names the transform, and its class is the setting that it has.
        if note := notes.get(shown) or notes.get(shown.removesuffix(".type")):
            fate = REFUSED
        elif name in foreign or name in reader.idle or is_unread(reader, name):
            fate, note = IDLE, reader.idle.get(name) or reason_of(name)
        elif name in unknown:
            meant = unknown[name]
            fate, note = UNKNOWN, f"did you mean {meant}?" if meant else ""
        else:
            fate, note = OBEYED, _meaning(name)
        given.append(Explained(shown, value, origin, fate, note))
    given.sort(key=lambda each: (each.name, each.origin))
    defaults = [
        Explained(name, reader.defaults[name], DEFAULT, OBEYED, _meaning(name, reader.defaults[name]))
        for name in sorted(reader.defaults)
        if not reader.given(name) and name not in WITHOUT_EFFECT
    ]
    return (*given, *defaults)


def _meaning(name: str, value: str = "given") -> str:
    """Return what the setting `name` does, and what holds if `value` is empty. Return "" if it is not declared."""
    setting = SETTINGS.get(name)
    if setting is None:
        return ""
    return setting.meaning if value or not setting.unset else f"{setting.meaning} Default: {setting.unset}."
