"""The options of a run of the modelled job. Hypothesis can simplify them one by one."""

from __future__ import annotations

import random
from dataclasses import dataclass

from hypothesis import strategies as st

from tests.property.server_model import Row


@dataclass(frozen=True)
class ModelOptions:
    """The options of a run. The first value of each in `_CHOICES` is the simplest."""

    commits: str  #: which gap between the server's commit stages is wide, see `Server.go_on`
    ddl_share: float  #: share of DDL and TRUNCATE among the server's transactions
    xa_share: float  #: share of XA statements among the others
    faulty: bool  #: statements fail by chance, and tasks are lost
    failing_over: bool  #: the server fails over by chance
    greed: float  #: chance that a batch takes everything there is
    poison: Row | None  #: key of a row that cannot be read
    deadly: float  #: chance that a commit is the last action of its process
    parallelism: int  #: most chunks that are planned at a time
    more_windows: int  #: most windows in flight beyond `parallelism`
    chunk_rows: int  #: first rows of a chunk
    more_rows: int  #: most rows of a chunk beyond `chunk_rows`
    held_batches: int  #: limit of batches for which a window is held
    small_rows: int  #: most rows of a small table; 0: no table is small
    batches: int  #: number of batches with signals
    signals: float  #: chance of a signal in a batch
    boundaries_beside: bool  #: boundaries are searched for beside the stream


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

MODEL_OPTIONS = st.tuples(*map(st.sampled_from, _CHOICES)).map(lambda chosen: ModelOptions(*chosen))


def random_options(random_: random.Random) -> ModelOptions:
    return ModelOptions(*(random_.choice(choices) for choices in _CHOICES))  # type: ignore[arg-type]
