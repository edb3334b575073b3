"""Kinds of settings: the values that a setting may have, and how the text of a file becomes a value."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeVar

from incsnap.config.patterns import split_list
from incsnap.errors import shorten
from incsnap.gtid import GtidSet
from incsnap.tables import TableId

_Value = TypeVar("_Value")
_LARGEST = 2**63 - 1
#: Most characters that Kafka allows in a topic's name.
LONGEST_NAME = 249
#: Least length of the token, the only protection of the page's buttons on the network.
_LEAST_TOKEN = 16
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}
_PEM = (".pem", ".crt", ".cer")


@dataclass(frozen=True, slots=True)
class Kind:
    """The values that a setting may have."""

    #: values for people: an error says "'x' is not ALLOWED", and the reference page shows the same text
    allowed: str
    #: returns the value of a text; raises ValueError, whose text replaces `allowed` in the error if there is one
    parse: Callable[[str], Any]
    empty: Any = None  #: value if neither the file nor the declaration has a text

    def value(self, text: str) -> Any:
        """Return the value of `text`. Raise ValueError if the kind does not allow it."""
        return self.parse(text) if text else self.empty


def whole(low: int, high: int = _LARGEST) -> Kind:
    """Return the kind of whole numbers from `low` to `high`."""

    def parse(text: str) -> int:
        number = int(text) if re.fullmatch(r"\s*[+-]?\d{1,25}\s*", text) else low - 1
        return _if(low <= number <= high, number)

    return Kind(f"a whole number from {low} " + ("on" if high == _LARGEST else f"to {high}"), parse)


def milliseconds(low: int, high: int) -> Kind:
    """Return the kind of times from `low` to `high` milliseconds. The value is in seconds."""
    number = whole(low, high)
    return Kind(number.allowed, lambda text: number.parse(text) / 1000)


def _duration(text: str) -> int:
    number = re.fullmatch(r"(\d{1,9})([smhd])", text.strip())
    return _if(number, int(number[1]) * _SECONDS[number[2]] if number else 0) or _if(None, 0)


def _share(text: str) -> int:
    """Return n for 1/n."""
    parts = re.fullmatch(r"1/([1-9]\d{0,6})", text.strip())
    return _if(parts, int(parts[1]) if parts else 0)


def one_of(*values: str, **older: str) -> Kind:
    """Return the kind of words, one of `values`, in any letter case. `older`: further words with their values."""
    words = {**dict(zip(values, values, strict=True)), **older}
    return Kind(f"one of: {', '.join(words)}", lambda text: _if(text.lower() in words, words.get(text.lower())), "")


def some_of(*values: str, absent: tuple[str, ...]) -> Kind:
    """Return the kind of lists of words. Words in `absent` exist only in Debezium and are allowed too."""

    def parse(text: str) -> tuple[str, ...]:
        words = tuple(dict.fromkeys(split_list(text)))
        return _if(not set(words) - {*values, *absent}, words)

    return Kind(f"a list of: {', '.join(values)}", parse, ())


def described(allowed: str) -> Kind:
    """Return the kind of texts that their section parses. `allowed` describes them for the reference page."""
    return Kind(allowed, str, "")


def matching(pattern: str, allowed: str) -> Kind:
    """Return the kind of texts that match a Python regex as a whole."""
    return Kind(allowed, lambda text: _if(re.fullmatch(pattern, text), text), "")


def pem(conversion: str) -> Kind:
    """Return the kind of paths of PEM files. `conversion`: the command that makes one from a Java key store."""
    allowed = f"a PEM file ({', '.join(_PEM)})"
    why = f"{allowed}; convert a Java key store by {conversion}"
    return Kind(allowed, lambda text: _if(text.lower().endswith(_PEM), text, why))


def _if(allowed: object, value: _Value, why: str = "") -> _Value:
    """Return `value`. Raise ValueError with `why` unless `allowed` is true."""
    if not allowed:
        raise ValueError(why)
    return value


def _table(text: str) -> TableId:
    try:
        return TableId.parse(text)
    except ValueError:
        raise ValueError from None


def _gtids(text: str) -> str:
    try:
        return str(GtidSet.parse(text))
    except ValueError as error:
        raise ValueError(f"{GTIDS.allowed}: {shorten(error)}") from None


def _moment(text: str) -> int:
    """Return a time in µs since 1970; 0 for `earliest`."""
    if text.lower() == "earliest":
        return 0
    if re.fullmatch(r"\d{12,14}", text):
        return int(text) * 1000
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError from None
    return int(_if(moment.tzinfo is not None, moment).timestamp() * 1_000_000)


def _operations(text: str) -> frozenset[str]:
    operations = frozenset(split_list(text.lower()))
    return _if(operations == {"none"} or operations <= set("cudt"), operations - {"none"})


def _address(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    sound = host and port.isdecimal() and 0 < int(port) < 65536
    return _if(sound, (host.removeprefix("[").removesuffix("]"), int(port) if sound else 0))


def _brokers(text: str) -> str:
    for broker in split_list(text):
        _address(broker.removeprefix("PLAINTEXT://"))
    return text


def _replicas(text: str) -> tuple[tuple[str, int], ...]:
    parts = [part if ":" in part else f"{part}:3306" for part in split_list(text)]
    addresses = tuple(_address(_if("/" not in part, part)) for part in parts)
    return _if(all(host for host, _ in addresses), addresses)


#: Times such as 90s, 30m, 12h and 7d. The value is in seconds.
DURATION = Kind("a time such as 30m, 12h or 7d", _duration)
#: One of so many. The value is the number.
SHARE = Kind("of the form 1/N", _share)
FLAG = Kind("true or false", lambda text: _if(text.lower() in ("true", "false"), text.lower() == "true"))
TEXT = described("text")
#: Java regexes. `SettingsReader` checks each pattern. `\,` stays in patterns of `REGEXES`, and is a comma in `COLUMNS`.
REGEXES = Kind("a list of Java regexes", split_list, ())
COLUMNS = Kind(REGEXES.allowed, lambda text: tuple(part.replace(r"\,", ",") for part in split_list(text)), ())
TABLE = Kind("of the form database.table (one table)", _table)
GTIDS = Kind("a GTID set, as uuid:1-5,uuid:1-9", _gtids)
MOMENT = Kind("earliest, a time with its zone as 2026-11-20T06:00:00Z, or milliseconds since 1970", _moment)
OPERATIONS = Kind("none, or a list of c, u, d and t", _operations)
BROKERS = Kind("host:port[,host:port...]", _brokers, "")
REPLICAS = Kind(BROKERS.allowed, _replicas, ())
TOPIC = matching(rf"[A-Za-z0-9._-]{{1,{LONGEST_NAME}}}", f"a name of at most {LONGEST_NAME} letters, digits, . _ -")
HOST = matching(r"[A-Za-z0-9._:-]{1,253}", "an address of this machine, or 0.0.0.0 for all of them")
TOKEN = matching(rf"[\x00-\x7f]{{{_LEAST_TOKEN},}}", f"a token of at least {_LEAST_TOKEN} characters of ASCII")
