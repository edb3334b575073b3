"""A test of I6: pause and resume change only the time at which rows are sent."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from incsnap.snapshot.commands import Pause, Resume
from incsnap.snapshot.sizing import Limits
from tests.support.snapshots import A, B, Snapshots, execute, spans


def released(pauses: list[int], rows: int, held_for: int) -> list[tuple[str, str | None, str]]:
    """Return all ranges that are sent, in order.

    The batches numbered `pauses` have a pause and a resume in turn.
    """
    job = Snapshots({A: list(range(rows)), B: list(range(rows))}, Limits(2, 5, 2, 3), tick_ms=60_000)
    job.batch(execute("s", A, B))
    for number in range(2, 400):
        commands = [Resume("r") if job.context.paused else Pause("p")] if number in pauses else []
        if number == 200 and job.context.paused:
            commands = [Resume("r")]
        # Only one batch in `held_for` passes a high watermark, so that windows outlive pauses.
        context = job.batch(*commands, pos=100 * (number - number % held_for)).context
        assert not (context.paused and context.planned)
        if not context.active:
            break
    assert not job.context.active
    return [span for context in job.log for span in spans(context.released)]


@given(
    pauses=st.lists(st.integers(2, 30), max_size=8, unique=True), rows=st.integers(0, 20), held_for=st.integers(1, 3)
)
def test_pause_and_resume_change_nothing_but_time(pauses: list[int], rows: int, held_for: int) -> None:
    undisturbed = released([], rows, held_for)

    ranges = released(pauses, rows, held_for)
    covered = {table: [s for s in ranges if s[0] == table] for table in ("a", "b")}

    assert {table: rows_of(covered[table], rows) for table in covered} == {
        table: rows_of([s for s in undisturbed if s[0] == table], rows) for table in covered
    }
    assert all(rows_of(covered[table], rows) == list(range(rows)) for table in covered)


def rows_of(ranges: list[tuple[str, str | None, str]], rows: int) -> list[int]:
    return sorted(
        row
        for _, lower, upper in ranges
        for row in range(rows)
        if (lower is None or int(lower) < row) and row <= int(upper)
    )
