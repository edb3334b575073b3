"""Tests of the counts of a comparison, the time left, and what is shown of them."""

from __future__ import annotations

import io
import logging
import os
import signal
import threading
import time

import pytest
from rich.console import Console

from incsnap.cli import interrupts, progress_display
from incsnap.verify.progress import Progress, Seen
from tests.support.waiting import PATIENCE_SECONDS, wait_until


class Clock:
    """A clock that the test moves."""

    now = 100.0

    def __call__(self) -> float:
        return self.now


def test_the_time_left_follows_from_what_was_read_since_the_beginning() -> None:
    clock = Clock()
    progress = Progress(clock)
    progress.expect(1_000, 3_000)
    progress.begin("reading tables")
    assert progress.seen().seconds_left is None
    clock.now += 10
    progress.read(rows=500)

    assert progress.seen() == Seen(500, 1_000, 0, 3_000, "reading tables", 70.0)
    assert progress.seen().share == 0.125


def test_what_another_process_has_read_does_not_shorten_the_time_left() -> None:
    clock = Clock()
    progress = Progress(clock)
    progress.expect(1_000, 1_000)
    progress.read(rows=900, earlier=True)
    clock.now += 10
    assert progress.seen().seconds_left is None
    progress.read(rows=100)

    assert progress.seen().seconds_left == 100.0


def test_more_rows_than_expected_are_no_more_than_all() -> None:
    progress = Progress()
    progress.expect(10, 0)
    progress.read(rows=50)

    assert (progress.seen().share, progress.seen().left) == (1.0, 0)
    assert str(progress.seen()) == "50 of 50 rows and 0 of 0 records"


def test_rows_that_the_statistics_have_and_the_tables_have_not_are_not_waited_for() -> None:
    progress = Progress()
    progress.expect(100, 50)
    progress.read(rows=50)
    progress.know_rows()

    assert (progress.seen().share, progress.seen().left) == (0.5, 50)


def test_a_terminal_gets_a_bar_and_lines_of_the_log_above_it(monkeypatch: pytest.MonkeyPatch) -> None:
    out = io.StringIO()
    monkeypatch.setattr(progress_display, "error_console", lambda: Console(file=out, force_terminal=True, width=150))
    monkeypatch.setattr(progress_display, "_BAR_SECONDS", 0.01)
    progress = Progress()
    progress.expect(10, 10)
    progress.begin("reading tables")
    progress.read(rows=5)
    with progress_display.shown(progress, quiet=True) as hide:
        wait_until(lambda: "reading tables: 5 of 10 rows and 0 of 10 records, 25 %" in out.getvalue())
        hide()


@pytest.mark.parametrize("quiet", [True, False])
def test_elsewhere_lines_of_the_log_show_the_progress_unless_it_is_quiet(
    quiet: bool, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(progress_display, "error_console", lambda: Console(file=io.StringIO()))
    monkeypatch.setattr(progress_display, "_LINE_SECONDS", 0.01)
    with caplog.at_level(logging.INFO), progress_display.shown(Progress(), quiet=quiet):
        if quiet:
            time.sleep(0.2)
            assert caplog.messages == []
        else:
            wait_until(lambda: bool(caplog.messages))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_first_signal_is_noted_and_the_second_has_its_usual_effect(number: signal.Signals) -> None:
    stopping = threading.Event()
    before = signal.getsignal(number)
    with interrupts.noted(stopping):
        os.kill(os.getpid(), number)
        assert stopping.wait(PATIENCE_SECONDS)
        assert signal.getsignal(number) is before
    assert signal.getsignal(number) is before
