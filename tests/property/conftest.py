"""How many examples: INCSNAP_PROFILE = check (`make check`), dev (`make test`), ci or nightly.

All but nightly take the same examples each time, so that a red run can be repeated; nightly takes new ones. A check has
half of dev's: it is for each save, and is to end within a minute on two cores with the types and all else.
"""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

_COMMON = settings(deadline=None, database=None, suppress_health_check=[HealthCheck.too_slow])

settings.register_profile("check", _COMMON, max_examples=30, derandomize=True)
settings.register_profile("dev", _COMMON, max_examples=100, derandomize=True)
settings.register_profile("ci", _COMMON, max_examples=2_000, derandomize=True)
settings.register_profile("nightly", _COMMON, max_examples=50_000)
settings.load_profile(os.environ.get("INCSNAP_PROFILE", "dev"))
