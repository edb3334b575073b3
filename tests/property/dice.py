"""Decisions of a model that Hypothesis takes one by one, so that a run that fails can be made plainer.

A number that seeds Python's own ``Random`` cannot: the run of a smaller seed is another run, not a smaller one.
"""

from __future__ import annotations

import random

from hypothesis import strategies as st

#: Steps between 0 and 1. Hypothesis draws floats with all their bits, eight times the bytes (a run may take 8192) and
#: in a manner that likes 0 and 1; no chance in a model is smaller than this step.
_STEPS = 200


class Dice(random.Random):
    """``source``: of Hypothesis. What is rare, ``random() < share``, does not happen in the plainest run."""

    def __init__(self, source: random.Random) -> None:
        super().__init__(0)
        self._source = source

    def random(self) -> float:
        return 1 - (1 + self._source.randint(0, _STEPS - 1)) / _STEPS

    def _randbelow(self, limit: int) -> int:
        """All the choices of ``random.Random`` are made of this."""
        return self._source.randint(0, limit - 1)


DICE: st.SearchStrategy[random.Random] = st.randoms(use_true_random=False).map(Dice)
