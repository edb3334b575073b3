"""Transforms and predicates that run: those that a file lists, without those that `incsnap.ignore` leaves out."""

from __future__ import annotations

from collections.abc import Mapping

from incsnap.config.patterns import split_list

IGNORE = "incsnap.ignore"
#: Beginnings of the names of options.
OPTIONS = ("transforms.", "predicates.")


def owner(name: str, settings: Mapping[str, str]) -> str:
    """Return the transform or predicate with the option `name`, or "" if it does not run.

    `settings` are those of the file. A name in a list may have dots, so the longest one that fits counts.

    >>> owner("transforms.a.b.type", {"transforms": "a, a.b"})
    'transforms.a.b'
    """
    kind, _, rest = name.partition(".")
    # A list behind a reference is not resolved here, so each transform may run.
    listed = rest.partition(".")[0] if "${" in settings.get(kind, "") else settings.get(kind, "")
    names = (f"{kind}.{each}" for each in split_list(listed))
    named = max((each for each in names if name.startswith(f"{each}.")), key=len, default="")
    ignored = split_list(settings.get(IGNORE, ""))
    return "" if named in ignored or "transforms" in ignored else named
