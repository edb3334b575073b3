"""The lines of the log: for people, or one JSON object each.

A record that is about a snapshot names it (``extra=about(signal)``): in text at the line's end, in JSON as
``snapshot``. All lines of one snapshot can so be found by the id of the signal that asked for it, as its
notifications can.
"""

from __future__ import annotations

import json
import logging
from datetime import UTC, datetime

_TEXT = "%(asctime)s %(levelname)-7s %(name)s: %(message)s"
_SNAPSHOT = "snapshot"


def about(signal: str) -> dict[str, str]:
    """``extra`` of a record; "" for one that is about no snapshot, or all of them."""
    return {_SNAPSHOT: signal} if signal else {}


class TextFormatter(logging.Formatter):
    def __init__(self) -> None:
        super().__init__(_TEXT)

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 (the library's name)
        signal = getattr(record, _SNAPSHOT, "")
        return super().formatMessage(record) + (f" [snapshot {signal}]" if signal else "")


class JsonFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        """Times are UTC, as ISO 8601 with milliseconds."""
        at = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        fields = {
            "time": at.replace("+00:00", "Z"),
            "level": record.levelname,
            "logger": record.name,
            "process": record.process,
            "message": record.getMessage(),
        }
        if signal := getattr(record, _SNAPSHOT, ""):
            fields["snapshot"] = signal
        if record.exc_info:
            fields["exception"] = self.formatException(record.exc_info)
        return json.dumps(fields, ensure_ascii=False)


def formatter(log_format: str) -> logging.Formatter:
    """``text`` or ``json``, as ``incsnap.log.format`` has it."""
    return JsonFormatter() if log_format == "json" else TextFormatter()
