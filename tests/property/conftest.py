"""The number of examples, by INCSNAP_PROFILE: check (`make check`), dev (`make test`), ci or nightly.

All profiles but nightly take the same examples each time, so that a failed run can be repeated. A check takes fewer
examples than dev. It is meant for each save, and should end within a minute on two cores, with types and all other
checks.
"""

from __future__ import annotations

from hypothesis import HealthCheck, settings

from tests.support.profile import PROFILE

_COMMON = settings(deadline=None, database=None, suppress_health_check=[HealthCheck.too_slow])

settings.register_profile("check", _COMMON, max_examples=30, derandomize=True)
settings.register_profile("dev", _COMMON, max_examples=100, derandomize=True)
settings.register_profile("ci", _COMMON, max_examples=2_000, derandomize=True)
settings.register_profile("nightly", _COMMON, max_examples=50_000)
settings.load_profile(PROFILE)
