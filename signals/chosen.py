"""Parsing the fields of execute-snapshot that choose rows: those of incsnap alone, which begin with `incsnap-`.

The field `incsnap-keys` is a list of keys as the records have them. The fields `incsnap-keys-topic` and
`incsnap-keys-file` name a topic or files with such keys. The field `incsnap-absent` says what becomes of a key that the
table does not have. The fields `incsnap-from` and `incsnap-to` are the least and greatest values of columns. The field
`incsnap-sample` is 1/n for one row in n, and `incsnap-seed` chooses which. The field `incsnap-whole-table` allows a
walk through the whole table. The section "Chosen rows" of docs/operation.md has examples.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from signals.exact_json import is_no_number_of_mysql
from signals.records import Chosen, is_blank

#: Most keys of one signal. More keys fit into a topic or a file.
MAX_KEYS = 10_000
_SOURCES = ("incsnap-keys", "incsnap-keys-topic", "incsnap-keys-file")
_RANGES = ("incsnap-from", "incsnap-to")
_SAMPLE, _SEED, _ABSENT, _WALK = "incsnap-sample", "incsnap-seed", "incsnap-absent", "incsnap-whole-table"
FIELDS = (*_SOURCES, *_RANGES, _SAMPLE, _SEED, _ABSENT, _WALK)
_SHARE = re.compile(r"1\s*/\s*([1-9][0-9]{0,8})\Z")
_SCALARS = (str, int, float, Decimal, bool, type(None))
#: Greatest seed: CRC32 has 32 bits.
_MAX_SEED = 2**32 - 1


class ChosenProblem(Exception):
    """An error in these fields: the reason, and what would be right."""

    def __init__(self, reason: str, hint: str) -> None:
        super().__init__(reason, hint)
        self.reason, self.hint = reason, hint


def chosen_rows(data: Mapping[str, Any]) -> Chosen | None:
    """Return the rows that the data of a signal chooses; None if it chooses none. Raise ChosenProblem."""
    own = [name for name in data if name.strip().lower().startswith("incsnap")]
    for name in own:
        if name not in FIELDS:  # to ignore a misspelt name would be to read the whole table
            meant = name.strip().lower().replace("_", "-")
            hint = f"Write {meant}." if meant in FIELDS else f"Known are {', '.join(FIELDS)}."
            raise ChosenProblem(f"{name!r} is unknown", hint)
        if data[name] is None:
            raise ChosenProblem(f"{name} is null", f"Write a value, or leave {name} out.")
    if not own:
        return None
    sources = [name for name in _SOURCES if name in data]
    if len(sources) > 1:
        raise ChosenProblem(f"{' and '.join(sources)} exclude each other", "Send a signal for each.")
    _check_together(data, bool(sources))
    chosen = Chosen(
        keys=_keys(data.get("incsnap-keys")),
        topic=_text(data, "incsnap-keys-topic"),
        files=_text(data, "incsnap-keys-file"),
        deletes=_choice(data, _ABSENT, ("count", "delete"), "count") == "delete",
        first=_values(data, "incsnap-from"),
        last=_values(data, "incsnap-to"),
        every=_every(data.get(_SAMPLE)),
        seed=_seed(data.get(_SEED, 0)),
        walks=_flag(data, _WALK),
    )
    if chosen.first is not None and chosen.last is not None and list(chosen.first) != list(chosen.last):
        raise ChosenProblem("incsnap-from and incsnap-to name different columns", "Name the same columns in one order.")
    return chosen


def _check_together(data: Mapping[str, Any], has_keys: bool) -> None:
    """Raise ChosenProblem for fields that have no meaning together."""
    others = [name for name in (*_RANGES, _SAMPLE) if name in data]
    if has_keys and others:
        raise ChosenProblem(f"{others[0]} has no meaning beside keys", "Leave it out, or send two signals.")
    if has_keys and not is_blank(data.get("surrogate-key")):
        raise ChosenProblem(
            "surrogate-key has no meaning beside keys", "Leave it out: keys have an order of their own."
        )
    if _ABSENT in data and not has_keys:
        raise ChosenProblem(f"{_ABSENT} needs keys", f"Write one of: {', '.join(_SOURCES)}.")
    if _SEED in data and _SAMPLE not in data:
        raise ChosenProblem(f"{_SEED} needs {_SAMPLE}", f'Write "{_SAMPLE}": "1/100" beside it.')
    collections = data.get("data-collections")
    if (has_keys or any(name in data for name in _RANGES)) and isinstance(collections, list) and len(collections) != 1:
        raise ChosenProblem(
            "keys and ranges belong to one table", "Name one data collection, and send several signals."
        )


def _keys(listed: object) -> tuple[Mapping[str, object], ...]:
    """Return the keys of a list; none if `listed` is None, because the field is missing."""
    hint = 'Write "incsnap-keys": [{"id": 5}, {"id": 7}].'
    if listed is None:
        return ()
    if not isinstance(listed, list) or not listed:
        raise ChosenProblem("incsnap-keys is not a list of keys", hint)
    if len(listed) > MAX_KEYS:
        what = f"incsnap-keys has {len(listed)} keys, and {MAX_KEYS} are the most"
        raise ChosenProblem(what, "Write them into a topic or a file: incsnap-keys-topic, incsnap-keys-file.")
    for key in listed:
        _check_object(key, "incsnap-keys", hint)
    return tuple(listed)


def _values(data: Mapping[str, Any], name: str) -> Mapping[str, object] | None:
    if name not in data:
        return None
    _check_object(data[name], name, f'Write "{name}": {{"id": 1000}}.')
    return dict(data[name])


def _check_object(value: object, name: str, hint: str) -> None:
    """Raise ChosenProblem unless `value` maps names of columns to values."""
    if not isinstance(value, dict) or not value:
        raise ChosenProblem(f"{name} holds what is not the JSON of a key", hint)
    if not all(isinstance(each, _SCALARS) for each in value.values()):
        raise ChosenProblem(f"{name} holds a list or an object as a value", hint)
    if odd := [each for each in value.values() if is_no_number_of_mysql(each)]:
        raise ChosenProblem(f"{name} holds {odd[0]}, which is no number of MySQL", hint)
    try:
        "".join((*value, *(each for each in value.values() if isinstance(each, str)))).encode()
    except UnicodeEncodeError:
        raise ChosenProblem(f"{name} holds half a character (a lone surrogate)", hint) from None


def _text(data: Mapping[str, Any], name: str) -> str:
    value = data.get(name, "")
    if name in data and (not isinstance(value, str) or not value.strip()):
        raise ChosenProblem(f"{name} is no text", f"Write its name as a text in {name}.")
    return str(value).strip()


def _choice(data: Mapping[str, Any], name: str, known: tuple[str, ...], default: str) -> str:
    value = data.get(name, default)
    if value not in known:
        raise ChosenProblem(f"{name} is not one of: {', '.join(known)}", f"Write one of: {', '.join(known)}.")
    return str(value)


def _flag(data: Mapping[str, Any], name: str) -> bool:
    value = data.get(name, False)
    if not isinstance(value, bool):
        raise ChosenProblem(f"{name} is neither true nor false", f'Write "{name}": true.')
    return value


def _every(share: object) -> int:
    if share is None:
        return 0
    match = _SHARE.match(share.strip()) if isinstance(share, str) else None
    if match is None:
        raise ChosenProblem(
            f"{_SAMPLE} is not of the form 1/100", f'Write "{_SAMPLE}": "1/100" for one row in a hundred.'
        )
    return int(match[1])


def _seed(seed: object) -> int:
    if type(seed) is not int or not 0 <= seed <= _MAX_SEED:
        raise ChosenProblem(f"{_SEED} is not a whole number from 0 to {_MAX_SEED}", f'Write "{_SEED}": 7.')
    return seed
