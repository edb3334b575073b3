"""Retries of a request to Kafka, as long as Kafka says that a retry may help."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import TypeVar

from incsnap.kafka.refusals import ClientError

Result = TypeVar("Result")
_log = logging.getLogger(__name__)
#: Seconds for one step with its retries: half of the default transaction time-out, after which brokers end a
#: transaction.
STEP_SECONDS = 30.0
#: Seconds of failures before a warning. A restarting broker is silent for a few seconds; then the operator should know.
_WARN_SECONDS = 3.0
#: Pause between retries, so that immediate errors do not keep a core busy.
_PAUSE_SECONDS = 0.02


def with_retries(
    doing: str,
    call: Callable[[float], Result],
    patience: float = STEP_SECONDS,
    goes_on: Callable[[], float] = lambda: 0.0,
) -> Result:
    """Return `call(seconds left)`, and retry while Kafka says that a retry may help.

    `doing` names the step in a warning. `goes_on` returns the seconds that the step has more, if it has come further
    since the last question, else 0. Raise the last ClientError when the seconds have passed, or when a retry
    cannot help.
    """
    began = time.monotonic()
    warned = False
    while True:
        passed = time.monotonic() - began
        left = patience - passed
        try:
            return call(max(left, 1.0))
        except ClientError as error:
            if not error.retriable or error.requires_abort:
                raise
            if left <= 0:
                patience = goes_on()
                if not patience:
                    raise
                began = time.monotonic()
            if passed > _WARN_SECONDS and not warned:
                warned = True
                _log.warning("Kafka answers with errors (%s: %s); retrying", doing, error)
            time.sleep(_PAUSE_SECONDS)
