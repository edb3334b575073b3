"""The turns of a session's readers: one by one, and several together."""

from __future__ import annotations

import threading
from contextlib import ExitStack

from incsnap.spark.reader_turns import ReaderTurns
from tests.support.waiting import PATIENCE_SECONDS, wait_until


def test_several_turns_are_taken_together_once_all_are_free() -> None:
    turns, steps = ReaderTurns(), list[str]()
    turns.open(2)

    def take(name: str, count: int) -> threading.Thread:
        def run() -> None:
            with turns.turn(lambda: False, count) as is_mine:
                assert is_mine
                steps.append(name)

        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        return thread

    with ExitStack() as first:
        first.enter_context(turns.turn(lambda: False))
        both = take("both", 2)
        wait_until(lambda: len(turns._waiting) == 1)
        # It came later, and does not overtake.
        one = take("one", 1)
        wait_until(lambda: len(turns._waiting) == 2)
        assert steps == []
    both.join(PATIENCE_SECONDS)
    one.join(PATIENCE_SECONDS)
    assert steps == ["both", "one"]


def test_a_thread_that_waits_gives_up_once_it_is_woken() -> None:
    turns, stopping, answers = ReaderTurns(), threading.Event(), list[bool]()

    def run() -> None:
        with turns.turn(stopping.is_set) as is_mine:
            answers.append(is_mine)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    wait_until(lambda: len(turns._waiting) == 1)
    stopping.set()
    turns.wake()
    thread.join(PATIENCE_SECONDS)
    assert answers == [False]


def test_a_thread_that_gives_up_holds_no_turn() -> None:
    turns, stopping = ReaderTurns(), threading.Event()
    turns.open(2)
    stopping.set()
    with turns.turn(stopping.is_set, 2) as is_mine:
        assert not is_mine
        with turns.turn(lambda: False, 2) as other:
            assert other
