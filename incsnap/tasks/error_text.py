"""Errors of Spark's Python processes as text: only the text reaches the driver, so it also carries the hint."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from incsnap.errors import IncsnapError

_SIGN = " → "
_LINE = re.compile(r"incsnap\.[a-z_.]+\.([A-Z]\w+): (.*)")


class hint_in_message:  # noqa: N801 (read as a statement: `with hint_in_message():`)
    """A context manager that raises an IncsnapError of its block again, with the text `message → hint`."""

    def __enter__(self) -> None: ...

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, IncsnapError) and _SIGN not in error.message:
            raise type(error)(f"{error.message}{_SIGN}{error.hint}", error.hint) from None


@contextmanager
def errors_of_tasks() -> Iterator[None]:
    """Raise the IncsnapError of a failed task in place of Spark's error.

    The text of Spark's error is in the JVM, which may have ended when a caller needs the text.
    """
    try:
        yield
    except (PySparkException, Py4JError) as error:
        known = error_from_text(str(error))
        if known is None:
            raise
        raise known from None


def error_from_text(text: str) -> IncsnapError | None:
    """Return the last IncsnapError in the text of a failed query, with its class, message and hint; None if there is
    none."""
    for name, line in reversed(_LINE.findall(text)):
        kind = next((kind for kind in _kinds(IncsnapError) if kind.__name__ == name), None)
        if kind is not None:
            message, _, hint = line.partition(_SIGN)
            return kind(message.strip(), hint.strip() or None)
    return None


def _kinds(kind: type[IncsnapError]) -> Iterator[type[IncsnapError]]:
    """Yield the class and all its subclasses."""
    yield kind
    for below in kind.__subclasses__():
        yield from _kinds(below)
