"""Whether a connector still runs: by Connect's REST interface, and by records that arrive."""

from __future__ import annotations

import json
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterable
from typing import Any

from incsnap.errors import ConfigError, ServerUnreachable
from incsnap.kafka.client_settings import ClientSettings
from incsnap.kafka.topics import admin_client, partition_counts
from incsnap.verify.topic_side import topic_ends

#: Seconds for which topics are watched.
WATCH_SECONDS = 3.0
_REQUEST_SECONDS = 10.0


def running_by_rest(url: str, connector: str) -> str:
    """Return in words how Connect sees the connector run; "" if it is stopped, failed or unknown.

    Raise ServerUnreachable if Connect does not answer, and ConfigError if the answer is not Connect's.
    """
    address = f"{url.rstrip('/')}/connectors/{urllib.parse.quote(connector, safe='')}/status"
    try:
        with urllib.request.urlopen(address, timeout=_REQUEST_SECONDS) as answer:
            status: dict[str, Any] = json.loads(answer.read())
            states = [status["connector"]["state"], *(task["state"] for task in status["tasks"])]
    except urllib.error.HTTPError as error:
        if error.code == 404:
            return ""
        raise ServerUnreachable(f"Kafka Connect at {url} answers {error.code} for the connector {connector}") from None
    except OSError as error:
        raise ServerUnreachable(f"Kafka Connect at {url} does not answer: {error}") from None
    except (ValueError, KeyError, TypeError) as error:
        raise ConfigError(f"{url} does not answer like Kafka Connect: {error}", "Correct --rest.") from None
    alive = [state for state in states if state not in ("STOPPED", "FAILED", "UNASSIGNED")]
    return f"Kafka Connect at {url} says {', '.join(states)}" if alive else ""


def arriving_records(client: ClientSettings, topics: Iterable[str], seconds: float = WATCH_SECONDS) -> str:
    """Return in words that records arrive in one of `topics` while they are watched; "" if none arrives."""
    counts = partition_counts(admin_client(client), topics)
    before = topic_ends(client, counts)
    time.sleep(seconds)
    after = topic_ends(client, counts)
    grown = sorted({topic for (topic, number), end in after.items() if end > before[topic, number]})
    return f"records arrive in {', '.join(grown[:3])}" if grown else ""
