"""Random decisions that Hypothesis draws one by one, so that it can simplify a run that fails.

A seed of Python's own `Random` cannot be simplified: a smaller seed gives another run, not a smaller one.
"""

from __future__ import annotations

import random

from hypothesis import strategies as st

#: Steps between 0 and 1. No chance in a model is smaller than a step. Hypothesis' own floats have all their bits. They
#: take eight times the bytes, of which a run may use 8192, and are often 0 or 1.
_STEPS = 200


class HypothesisRandom(random.Random):
    """A `random.Random` whose numbers come from Hypothesis. In the simplest run, `random() < share` is never true."""

    def __init__(self, source: random.Random) -> None:
        super().__init__(0)
        self._source = source

    def random(self) -> float:
        return 1 - (1 + self._source.randint(0, _STEPS - 1)) / _STEPS

    def _randbelow(self, limit: int) -> int:
        """Return a number below `limit`. All choices of `random.Random` are made of it."""
        return self._source.randint(0, limit - 1)


RANDOMS: st.SearchStrategy[random.Random] = st.randoms(use_true_random=False).map(HypothesisRandom)
