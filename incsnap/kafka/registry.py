"""A client of the schema registry: it exchanges a schema for the id that precedes each record.

The registry is asked once for each schema and process.
https://docs.confluent.io/platform/current/schema-registry/develop/api.html
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import urlsplit

from incsnap.config.registry_settings import client_settings
from incsnap.config.secrets import without_password
from incsnap.connect.avro_difference import differences
from incsnap.errors import ConfigError, IncsnapError, ServerUnreachable
from incsnap.kafka.refusals import SinkRefused
from incsnap.kafka.registry_answers import may_pass

_log = logging.getLogger(__name__)

_MOST_DIFFERENCES = 8


class Registry:
    """A schema registry, reached with the settings of a converter. Raise ConfigError if the settings are wrong.

    `kind` says what schemas are: avro, json-schema or protobuf.
    """

    def __init__(self, url: str, client: Mapping[str, str], kind: str = "avro") -> None:
        # Imported here, because the import takes 0.25 s and a job that writes JSON does not need it.
        from confluent_kafka import schema_registry

        settings = client_settings(url, client)
        self._url = ",".join(_shown(each.strip()) for each in url.split(","))
        self._settings = settings
        self._errors = schema_registry.SchemaRegistryError
        self._kind = kind
        type_ = {"avro": "AVRO", "json-schema": "JSON", "protobuf": "PROTOBUF"}[kind]
        self._schema: Callable[[str], Any] = lambda text: schema_registry.Schema(text, type_)
        # A new client for each request: requests are rare, and workers need no idle connection.
        self._open: Callable[[], Any] = lambda: schema_registry.SchemaRegistryClient(dict(settings.client))
        try:
            with self._open():
                pass
        except (ValueError, TypeError, OSError) as error:
            raise ConfigError(
                f"The settings of the schema registry {self._url} are wrong: {error}",
                "Correct key.converter.* and value.converter.*.",
            ) from error
        self._numbers: dict[tuple[str, str], int] = {}

    def register(self, subject: str, schema: str) -> int:
        """Return the id of `schema` (JSON, or the text of a proto file).

        If the schema is new under `subject`, register it if the settings allow that. Raise ServerUnreachable if the
        registry does not answer. Raise SinkRefused with the differences if the registry refuses the schema. Raise
        ConfigError if the login fails.
        """
        known = self._numbers.get((subject, schema))
        if known is None:
            known = self._numbers[subject, schema] = self._number(subject, schema)
            _log.info("Schema %d of %s", known, subject)
        return known

    def reach(self) -> None:
        """Send a first request. Raise ServerUnreachable if there is no answer, and ConfigError if the login fails."""
        self._ask("listing its subjects", "", "", lambda client: client.get_subjects())

    def _number(self, subject: str, schema: str) -> int:
        """Return the id of `schema` in the way that the settings ask for: latest version, look-up or registration."""
        if self._settings.latest:
            return self._latest(subject, schema)
        normalize = self._settings.normalize
        if self._settings.auto_register:
            number: int = self._ask(
                f"registering a schema of {subject}",
                subject,
                schema,
                lambda client: client.register_schema(subject, self._schema(schema), normalize),
            )
        else:
            number = self._ask(
                f"looking up the schema of {subject} (auto.register.schemas=false)",
                subject,
                schema,
                lambda client: client.lookup_schema(subject, self._schema(schema), normalize).schema_id,
            )
        return number

    def _latest(self, subject: str, schema: str) -> int:
        """Return the id of the subject's latest schema.

        Raise SinkRefused if that is not `schema`, which the records have.
        """
        what = f"looking up the latest schema of {subject} (use.latest.version=true)"
        latest = self._ask(what, subject, schema, lambda client: client.get_latest_version(subject))
        if self._content(latest.schema.schema_str) != self._content(schema):
            raise SinkRefused(
                f"The latest schema of {subject} is not that of the table"
                + self._differences(latest.schema.schema_str, schema),
                "Set use.latest.version=false and let incsnap register its schema, or register this one by hand:\n"
                + schema,
            )
        return int(latest.schema_id)

    def _content(self, schema: str) -> Any:
        """Return a schema in a form that does not depend on blanks."""
        return schema.split() if self._kind == "protobuf" else json.loads(schema)

    def _ask(self, what: str, subject: str, schema: str, question: Callable[[Any], Any]) -> Any:
        """Return `question(client)`. `what` describes the request in errors."""
        try:
            with self._open() as client:
                return question(client)
        except self._errors as error:
            raise self._refusal(what, subject, schema, error) from error
        except Exception as error:  # the class of the HTTP library's errors differs between versions of the client
            raise ServerUnreachable(
                f"The schema registry {self._url} does not answer {what}: {type(error).__name__} {error}",
                "Check schema.registry.url of key.converter and value.converter, and that the registry runs there.",
            ) from error

    def _refusal(self, what: str, subject: str, schema: str, error: Any) -> IncsnapError:
        """Return the error for the registry's HTTP status."""
        status, reason = error.http_status_code, str(error.error_message)
        if may_pass(status):
            return ServerUnreachable(f"The schema registry {self._url} failed {what}: {reason} (status {status})")
        if status in (401, 403):
            return ConfigError(
                f"The schema registry {self._url} denies access {what}: {reason} (status {status})",
                "Check basic.auth.user.info of key.converter and value.converter, and the user's rights.",
            )
        if status == 409:
            return SinkRefused(
                f"The schema registry refused {what}: not compatible with what is registered: {reason}"
                + self._compared(subject, schema),
                f"Change the table in a compatible way (new columns that take NULL), or allow more for this subject:"
                f' PUT {self._url.partition(",")[0]}/config/{subject} {{"compatibility": "NONE"}}.',
            )
        if status == 404:
            return SinkRefused(
                f"The schema registry refused {what}: {reason} (status 404)" + self._compared(subject, schema),
                "Set auto.register.schemas=true, or register this schema by hand:\n" + schema,
            )
        return SinkRefused(
            f"The schema registry {self._url} refused {what}: {reason} (status {status})",
            "See the answer of the registry; the schema is:\n" + schema,
        )

    def _compared(self, subject: str, schema: str) -> str:
        """Return the differences to the subject's latest schema as text, or "" if that schema cannot be read."""
        try:
            with self._open() as client:
                latest = client.get_latest_version(subject).schema.schema_str
        except Exception:  # noqa: BLE001 - the refusal matters more; it is reported without the older schema
            return ""
        return self._differences(latest, schema)

    def _differences(self, latest: str, schema: str) -> str:
        """Return the differences of two Avro schemas for people; "" for other schemas, which are shown whole."""
        return _listed(differences(latest, schema)) if self._kind == "avro" else ""


def _listed(lines: list[str]) -> str:
    shown = lines[:_MOST_DIFFERENCES]
    if len(lines) > len(shown):
        shown.append(f"and {len(lines) - len(shown)} more")
    return "".join(f"\n  {line}" for line in shown)


def _shown(url: str) -> str:
    """Return the address of a registry without user and password."""
    parts = urlsplit(url)
    shown = url if parts.username is None else url.replace(parts.netloc, parts.netloc.rpartition("@")[2])
    return without_password(shown)
