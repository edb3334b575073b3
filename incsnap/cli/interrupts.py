"""Ctrl-C, which lets a command end cleanly, and questions that Ctrl-C answers with no."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

import click

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def noted(stopping: threading.Event) -> Iterator[None]:
    """Set `stopping` at the first SIGINT or SIGTERM in the block. A second one has the effect that it had before."""

    def note(number: int, frame: FrameType | None) -> None:
        stopping.set()
        restore()

    def restore() -> None:
        for number, handler in before.items():
            signal.signal(number, handler)

    before = {number: signal.signal(number, note) for number in _SIGNALS}
    try:
        yield
    finally:
        restore()


def confirmed(question: str) -> bool:
    """Ask on the terminal. Return True for yes; SIGINT, SIGTERM and the end of the input mean no."""
    # A handler that returns lets the question go on.
    before = {number: signal.signal(number, signal.default_int_handler) for number in _SIGNALS}
    try:
        return click.confirm(question, err=True)
    except (click.Abort, KeyboardInterrupt):
        click.echo(err=True)
        return False
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
