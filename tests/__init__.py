"""Tests: unit and property without servers, integration, faults and end-to-end with real ones.

Hypothesis times no example out: on a busy machine the first one of a test pays for imports and caches.
"""

from hypothesis import settings

settings.register_profile("incsnap", deadline=None)
settings.load_profile("incsnap")
