"""A reader of serialised Java objects, for the few classes that offsets of Kafka Connect contain.

A standalone worker writes its offsets as a `HashMap<byte[], byte[]>`. Debezium writes the keys of an incremental
snapshot as an `Object[]` in hexadecimal digits. The reader makes plain values of both. It creates no object of a class
that the stream names: a class that is not in `_VALUES` is an error.

https://docs.oracle.com/en/java/javase/17/docs/specs/serialization/protocol.html
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

_MAGIC = b"\xac\xed\x00\x05"
_NULL, _REFERENCE, _CLASS, _OBJECT, _STRING, _ARRAY = range(0x70, 0x76)
_BLOCK, _END_OF_BLOCKS, _LONG_BLOCK, _LONG_STRING = 0x77, 0x78, 0x7A, 0x7C
#: Bits of a class's flags.
_WRITES_MORE, _EXTERNAL, _BLOCKS = 0x01, 0x04, 0x08
#: The first number of a reference to an earlier value.
_FIRST_HANDLE = 0x7E0000
_NUMBERS = {"B": ">b", "C": ">H", "D": ">d", "F": ">f", "I": ">i", "J": ">q", "S": ">h", "Z": ">?"}
_MOST_DEPTH = 64


class NotUnderstood(ValueError):
    """An error: the bytes are no serialised object, or one of a class that is not expected."""


@dataclass(frozen=True, slots=True)
class _ClassOf:
    """The description of a class in the stream."""

    name: str  #: full name, such as java.lang.Long
    flags: int  #: bits that say how its objects are written
    fields: tuple[tuple[str, str], ...]  #: (type code, name)
    parent: _ClassOf | None  #: class above it that can be serialised; None: there is none


@dataclass(slots=True)
class _Object:
    """An object of the stream: its fields, and what its class has written besides them."""

    name: str  #: name of its class
    fields: dict[str, Any] = field(default_factory=dict)  #: values by the names of fields
    more: list[Any] = field(default_factory=list)  #: objects, and blocks of data as bytes


def read_object(serialised: bytes) -> Any:
    """Return the value of a serialised object: None, a number, str, bytes, date, time, datetime, list or dict.

    A key of a dict and an element of a list are such values too. Raise NotUnderstood for any other object.
    """
    if not serialised.startswith(_MAGIC):
        raise NotUnderstood("no serialised Java object begins here")
    try:
        return _plain(_Reader(serialised, len(_MAGIC)).value(0))
    except (struct.error, IndexError, UnicodeDecodeError, OverflowError) as error:
        raise NotUnderstood(f"the serialised object is damaged: {error}") from None


class _Reader:
    """A reader of one stream. `value` may be called as often as the stream has values."""

    def __init__(self, content: bytes, at: int) -> None:
        self._content, self._at = content, at
        self._handles: list[Any] = []

    def value(self, depth: int) -> Any:
        """Return the next value: a block of data as bytes, the end of blocks as `_END`. Raise NotUnderstood."""
        if depth > _MOST_DEPTH:
            raise NotUnderstood("objects lie too deep in each other")
        code = self._number(">B")
        if code == _NULL:
            return None
        if code == _REFERENCE:
            return self._handles[self._number(">i") - _FIRST_HANDLE]
        if code in (_STRING, _LONG_STRING):
            return self._kept(self._text(">H" if code == _STRING else ">q"))
        if code in (_BLOCK, _LONG_BLOCK):
            return self._bytes(self._number(">B" if code == _BLOCK else ">i"))
        if code == _END_OF_BLOCKS:
            return _END
        if code == _ARRAY:
            return self._array(depth)
        if code == _OBJECT:
            return self._object(depth)
        raise NotUnderstood(f"a value of the kind {code:#x}")

    def _object(self, depth: int) -> _Object:
        class_ = self._class(depth)
        if class_ is None:
            raise NotUnderstood("an object without a class")
        made: _Object = self._kept(_Object(class_.name))
        hierarchy: list[_ClassOf] = []
        each: _ClassOf | None = class_
        while each is not None:
            hierarchy.insert(0, each)
            each = each.parent
        for each in hierarchy:
            if each.flags & _EXTERNAL:
                if not each.flags & _BLOCKS:
                    raise NotUnderstood(f"an object of {each.name} in an old form")
                self._blocks(made, depth)
                continue
            for kind, name in each.fields:
                made.fields[name] = self._field(kind, depth)
            if each.flags & _WRITES_MORE:
                self._blocks(made, depth)
        return made

    def _blocks(self, made: _Object, depth: int) -> None:
        while (part := self.value(depth + 1)) is not _END:
            made.more.append(part)

    def _array(self, depth: int) -> Any:
        class_ = self._class(depth)
        kind = "" if class_ is None else class_.name[1:2]
        place = len(self._handles)
        self._handles.append(None)
        count = self._number(">i")
        elements: Any
        if kind == "B":
            elements = self._bytes(count)
        else:
            if not 0 <= count <= len(self._content):
                raise NotUnderstood(f"an array of {count} elements")
            elements = [self._field(kind, depth) for _ in range(count)]
        self._handles[place] = elements
        return elements

    def _field(self, kind: str, depth: int) -> Any:
        return self._number(_NUMBERS[kind]) if kind in _NUMBERS else self.value(depth + 1)

    def _class(self, depth: int) -> _ClassOf | None:
        """Return the description of a class that stands next."""
        if depth > _MOST_DEPTH:
            raise NotUnderstood("classes have too many parents")
        code = self._number(">B")
        if code == _NULL:
            return None
        if code == _REFERENCE:
            known = self._handles[self._number(">i") - _FIRST_HANDLE]
            if not isinstance(known, _ClassOf):
                raise NotUnderstood("a reference that leads to no class")
            return known
        if code != _CLASS:
            raise NotUnderstood(f"a class of the kind {code:#x}")
        name = self._text(">H")
        self._number(">q")  # the class's version
        place = len(self._handles)
        self._handles.append(None)
        flags, count = self._number(">B"), self._number(">H")
        fields = []
        for _ in range(count):
            kind, named = chr(self._number(">B")), self._text(">H")
            if kind in "[L":
                self.value(depth + 1)  # the name of the field's class
            fields.append((kind, named))
        while self.value(depth + 1) is not _END:
            pass
        made = _ClassOf(name, flags, tuple(fields), self._class(depth + 1))
        self._handles[place] = made
        return made

    def _kept(self, made: Any) -> Any:
        self._handles.append(made)
        return made

    def _number(self, form: str) -> Any:
        (number,) = struct.unpack_from(form, self._content, self._at)
        self._at += struct.calcsize(form)
        return number

    def _text(self, form: str) -> str:
        # Java writes a character beyond U+FFFF as two halves, and NUL as two bytes.
        text = self._bytes(self._number(form)).replace(b"\xc0\x80", b"\0").decode("utf-8", "surrogatepass")
        return text.encode("utf-16", "surrogatepass").decode("utf-16")

    def _bytes(self, count: int) -> bytes:
        if not 0 <= count <= len(self._content) - self._at:
            raise NotUnderstood("the serialised object is cut off")
        self._at += count
        return self._content[self._at - count : self._at]


#: Marks the end of what a class has written besides its fields.
_END = object()


def _plain(value: Any) -> Any:
    """Return the value of what the reader has read. Raise NotUnderstood for an object of an unexpected class."""
    if isinstance(value, list):
        return [_plain(each) for each in value]
    if not isinstance(value, _Object):
        return value
    made = _VALUES.get(value.name)
    if made is None:
        raise NotUnderstood(f"an object of the class {value.name}")
    return made(value)


def _boxed(value: _Object) -> Any:
    return value.fields["value"]


def _integer(value: _Object) -> int:
    return int(value.fields["signum"]) * int.from_bytes(value.fields["magnitude"], "big")


def _decimal(value: _Object) -> Decimal:
    unscaled, scale = _integer(value.fields["intVal"]), value.fields["scale"]
    return Decimal((int(unscaled < 0), tuple(map(int, str(abs(unscaled)))), -scale))


def _map(value: _Object) -> dict[Any, Any]:
    parts = [_plain(each) for each in value.more[1:]]  # the first part has the sizes
    return dict(zip(parts[::2], parts[1::2], strict=True))


def _in_milliseconds(value: _Object) -> datetime:
    (milliseconds,) = struct.unpack(">q", value.more[0])
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=milliseconds)


def _temporal(value: _Object) -> date | time | datetime:
    """Return a value of java.time. Its parts stand in one block behind a number for the class."""
    (content,) = value.more
    kind, rest = content[0], content[1:]
    if kind == 1:
        raise NotUnderstood("an object of the class java.time.Duration (a TIME)")
    if kind == 2:
        seconds, nanoseconds = struct.unpack(">qi", rest)
        return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=seconds, microseconds=nanoseconds // 1000)
    if kind == 3:
        return date(*struct.unpack(">iBB", rest))
    if kind == 4:
        return _time(rest)
    if kind == 5:
        return datetime.combine(date(*struct.unpack(">iBB", rest[:6])), _time(rest[6:]))
    raise NotUnderstood(f"a time of the kind {kind}")


def _time(parts: bytes) -> time:
    """Return a LocalTime: hour, minute, second as bytes, then nanoseconds. The last part that is not 0 is inverted."""
    hour, minute, second = (max(each, ~each) for each in struct.unpack("3b", parts[:3].ljust(3, b"\0")))
    microsecond = struct.unpack(">i", parts[3:7])[0] // 1000 if len(parts) > 3 else 0
    return time(hour, minute, second, microsecond)


_VALUES: Mapping[str, Callable[[_Object], Any]] = {
    **{f"java.lang.{name}": _boxed for name in ("Byte", "Short", "Integer", "Long", "Float", "Double", "Boolean")},
    "java.lang.Character": lambda value: chr(value.fields["value"]),
    "java.math.BigInteger": _integer,
    "java.math.BigDecimal": _decimal,
    "java.util.HashMap": _map,
    "java.sql.Date": _in_milliseconds,
    "java.sql.Timestamp": _in_milliseconds,
    "java.util.Date": _in_milliseconds,
    "java.time.Ser": _temporal,
}
