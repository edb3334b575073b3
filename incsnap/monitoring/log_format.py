"""Formatters for log lines: plain text for people, or one JSON object a line.

A log record that concerns a snapshot carries the id of the signal that asked for the snapshot (`extra=about(signal)`).
The text format appends the id to the line. The JSON format has the id in the field `snapshot`. So all lines of one
snapshot can be found by the signal id, which the snapshot's notifications carry as well.
"""

from __future__ import annotations

import json
import logging
from datetime import UTC, datetime

_TEXT = "%(asctime)s %(levelname)-7s %(name)s: %(message)s"
_SNAPSHOT = "snapshot"


def about(signal: str) -> dict[str, str]:
    """Return the `extra` argument for a log call about the snapshot of `signal`.

    "" means no snapshot, or all snapshots.
    """
    return {_SNAPSHOT: signal} if signal else {}


class TextFormatter(logging.Formatter):
    """A formatter for people. It appends `[snapshot ID]` to lines about a snapshot."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 (the library's name)
        signal = getattr(record, _SNAPSHOT, "")
        return super().formatMessage(record) + (f" [snapshot {signal}]" if signal else "")


class JsonFormatter(logging.Formatter):
    """A formatter that writes each record as one JSON object on one line."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the record as JSON. `time` is UTC in ISO 8601 with milliseconds."""
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
    """Return the formatter for `log_format`, the value of `incsnap.log.format`: `text` or `json`."""
    return JsonFormatter() if log_format == "json" else TextFormatter(_TEXT)


def writes_json() -> bool:
    """Return True if this process logs JSON."""
    return any(isinstance(handler.formatter, JsonFormatter) for handler in logging.getLogger().handlers)
