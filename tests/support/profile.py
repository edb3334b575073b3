"""The profile of a run (`INCSNAP_PROFILE`): how much random input tests take, and from which seed."""

from __future__ import annotations

import os
import random

#: "check" (`make check`), "dev" (`make test`), "ci" or "nightly"
PROFILE = os.environ.get("INCSNAP_PROFILE", "dev")
NIGHTLY = PROFILE == "nightly"


def seed(fixed: int) -> int:
    """Return `fixed`, or another seed each time in the nightly runs.

    So a failed run of the other profiles can be repeated, and the nightly runs find what no run before them found.
    """
    return random.randrange(1 << 32) if NIGHTLY else fixed
