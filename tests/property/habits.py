"""What a run of the modelled job is like: its habits and a seed. The habits can be made plainer, one by one."""

from __future__ import annotations

import random
from dataclasses import dataclass

from hypothesis import strategies as st

from tests.property.server_model import Row


@dataclass(frozen=True)
class Habits:
    """``commits``: which of the server's gaps is wide. ``greed``: how often a batch takes all there is. ``deadly``:
    how often a commit is its process's last. The first value of each is the plainest."""

    commits: str
    ddl_share: float
    xa_share: float
    faulty: bool
    failing_over: bool
    greed: float
    poison: Row | None
    deadly: float
    parallelism: int
    more_windows: int
    chunk_rows: int
    more_rows: int
    held_batches: int
    small_rows: int
    batches: int
    signals: float
    boundaries_beside: bool


_CHOICES = (
    ("any", "late to show", "late to execute"),
    (0.0, 0.0, 0.15),
    (0.0, 0.4),
    (False, True),
    (False, False, True),
    (0.9, 0.5, 0.2),
    (*[None] * 81, *((key,) for key in range(9))),
    (0.0, 0.1),
    (1, 2, 3),
    (0, 1, 2, 3),
    (1, 2, 3),
    (2, 3),
    tuple(range(2, 9)),
    (0, 0, 1, 4),
    tuple(range(8, 17)),
    (0.25, 0.0),
    (False, True),
)

HABITS = st.tuples(*map(st.sampled_from, _CHOICES)).map(lambda chosen: Habits(*chosen))


def any_habits(random_: random.Random) -> Habits:
    return Habits(*(random_.choice(choices) for choices in _CHOICES))  # type: ignore[arg-type]
