"""Settings of the watch over a job: the port of its metrics and page, who may act there, the form of the log."""

from __future__ import annotations

import re

from pydantic import SecretStr

from incsnap.config.reading import SettingsReader
from incsnap.config.settings import MonitoringSettings

LOG_FORMATS = ("text", "json")
_HOST = re.compile(r"[A-Za-z0-9._:-]{1,253}\Z")
#: A token is all that stands between the network and a button.
_LEAST_TOKEN = 16


def monitoring(reading: SettingsReader) -> MonitoringSettings:
    port = reading.integer("incsnap.metrics.port", 0, 1, 65535)
    host = reading.text("incsnap.metrics.host", "127.0.0.1")
    if not _HOST.match(host):
        reading.problem("incsnap.metrics.host", "an address of this machine, or 0.0.0.0 for all of them")
    token = reading.text("incsnap.page.token")
    if token and (len(token) < _LEAST_TOKEN or not token.isascii()):
        reading.problem("incsnap.page.token", f"a token of at least {_LEAST_TOKEN} characters of ASCII")
    for name in ("incsnap.metrics.host", "incsnap.page.token"):
        if reading.given(name) and not reading.given("incsnap.metrics.port"):
            reading.warnings.append(f"{name} has no effect without incsnap.metrics.port")
    return MonitoringSettings(
        port=port or None,
        host=host,
        token=SecretStr(token),
        log_format=reading.choice("incsnap.log.format", "text", LOG_FORMATS),
    )
