"""A question to Kafka that is repeated while Kafka says that a repetition may help."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import TypeVar

from incsnap.kafka.refusals import ClientError

Result = TypeVar("Result")
_log = logging.getLogger(__name__)
#: Seconds for one step, retries included. Half the default transaction timeout: then the brokers end it for us.
STEP_SECONDS = 30.0
#: A broker that restarts is silent for seconds; then the operator should know.
_WARN_SECONDS = 3.0
#: Errors that come back at once must not keep a core busy.
_PAUSE_SECONDS = 0.02


def patiently(doing: str, call: Callable[[float], Result], patience: float = STEP_SECONDS) -> Result:
    """Return ``call(seconds left)``, called again while Kafka says that a repetition may help.

    Raise its last ``ClientError`` when ``patience`` seconds have passed, or when a repetition cannot help.
    """
    began = time.monotonic()
    warned = False
    while True:
        passed = time.monotonic() - began
        left = patience - passed
        try:
            return call(max(left, 1.0))
        except ClientError as error:
            if not error.retriable or error.requires_abort or left <= 0:
                raise
            if passed > _WARN_SECONDS and not warned:
                warned = True
                _log.warning("Kafka does not answer well (%s: %s); trying again", doing, error)
            time.sleep(_PAUSE_SECONDS)
