"""A client of Apicurio's registry, through its own REST API: it exchanges a schema for its id.

Apicurio's converters count schemas by globalId (a version of an artifact) or contentId (its text). The protocol of
Confluent's clients shows one of the two, as the registry is set up.
https://www.apicur.io/registry/docs/apicurio-registry/3.0.x/assets-attachments/registry-rest-api.htm
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from contextlib import closing
from typing import Any
from urllib.parse import quote

from incsnap.config.apicurio_settings import ApicurioSettings, apicurio_settings
from incsnap.config.secrets import without_password
from incsnap.connect.avro_difference import differences
from incsnap.errors import ConfigError, IncsnapError, ServerUnreachable
from incsnap.kafka.refusals import SinkRefused
from incsnap.kafka.registry_answers import may_pass

_log = logging.getLogger(__name__)

_SECONDS = 10.0
_JSON = {"Content-Type": "application/json"}


class ApicurioRegistry:
    """Apicurio's registry, reached with the settings of a converter. Raise ConfigError if the settings are wrong.

    `kind` says what schemas are: avro, or ext-json (schemas of Kafka Connect as JSON).
    """

    def __init__(self, client: Mapping[str, str], kind: str) -> None:
        self._settings = apicurio_settings(client, avro=kind == "avro")
        self._type = "AVRO" if kind == "avro" else "KCONNECT"
        self._numbers: dict[tuple[str, str], int] = {}

    def register(self, subject: str, schema: str) -> int:
        """Return the id of `schema` (JSON) in the artifact `subject`.

        If the schema is new there, register it if the settings allow that. Raise ServerUnreachable if the registry does
        not answer, SinkRefused if it refuses the schema, and ConfigError if the login fails.
        """
        known = self._numbers.get((subject, schema))
        if known is None:
            version = self._version(subject, schema)
            known = self._numbers[subject, schema] = int(version[self._settings.use_id])
            _log.info("Schema %d of %s", known, subject)
        return known

    def schema(self, number: int) -> Any:
        """Return the schema with this id, as the settings count ids. Raise what `register` raises."""
        path = f"/ids/{self._settings.use_id}s/{number}"
        # The API v2 knows contents by a path with a slash at its end, v3 by one without.
        slash = "/" if self._settings.use_id == "contentId" and not self._settings.is_third else ""
        return self._ask("GET", path + slash, f"for schema {number}")

    def reach(self) -> None:
        """Send a first request. Raise ServerUnreachable if there is no answer, and ConfigError if the login fails."""
        self._ask("GET", "/search/artifacts?limit=1", "listing its artifacts")

    def _version(self, subject: str, schema: str) -> Mapping[str, Any]:
        """Return the version of the artifact with this schema, in the way that the settings ask for."""
        if self._settings.auto_register:
            return self._registered(subject, schema)
        if self._settings.latest:
            return self._latest(subject, schema)
        what = f"looking up the schema of {subject} (apicurio.registry.auto-register=false)"
        if not self._settings.is_third:
            path = f"{self._artifact(subject)}/meta"
            return dict(self._ask("POST", path, what, schema, content=schema, headers=_JSON))
        place = f"groupId={_part(self._settings.group)}&artifactId={_part(subject)}&artifactType={self._type}"
        versions = self._ask("POST", f"/search/versions?{place}", what, schema, content=schema, headers=_JSON)[
            "versions"
        ]
        if not versions:
            raise _unknown(what, "the artifact has no such version", schema)
        return dict(versions[-1])

    def _registered(self, subject: str, schema: str) -> Mapping[str, Any]:
        path, what = f"/groups/{_part(self._settings.group)}/artifacts", f"registering a schema of {subject}"
        if not self._settings.is_third:
            named = {**_JSON, "X-Registry-ArtifactId": subject, "X-Registry-ArtifactType": self._type}
            path = f"{path}?ifExists=RETURN_OR_UPDATE"
            return dict(self._ask("POST", path, what, schema, content=schema, headers=named))
        first = {"content": {"content": schema, "contentType": "application/json"}}
        body = json.dumps({"artifactId": subject, "artifactType": self._type, "firstVersion": first})
        path = f"{path}?ifExists=FIND_OR_CREATE_VERSION"
        return dict(self._ask("POST", path, what, schema, content=body, headers=_JSON)["version"])

    def _latest(self, subject: str, schema: str) -> Mapping[str, Any]:
        """Return the latest version of the artifact. Raise SinkRefused if its schema is not `schema`."""
        what = f"looking up the latest schema of {subject} (apicurio.registry.find-latest=true)"
        place = self._artifact(subject)
        of_meta, of_text = f"{place}/meta", place
        if self._settings.is_third:
            of_meta = f"{place}/versions/branch=latest"
            of_text = f"{of_meta}/content"
        version, latest = self._ask("GET", of_meta, what, schema), self._ask("GET", of_text, what, schema)
        if latest != json.loads(schema):
            different = differences(json.dumps(latest), schema) if self._type == "AVRO" else []
            raise SinkRefused(
                "".join(
                    [f"The latest schema of {subject} is not that of the table", *(f"\n  {one}" for one in different)]
                ),
                "Set apicurio.registry.auto-register=true and let incsnap register its schema, or register this one by"
                f" hand:\n{schema}",
            )
        return dict(version)

    def _artifact(self, subject: str) -> str:
        return f"/groups/{_part(self._settings.group)}/artifacts/{_part(subject)}"

    def _ask(self, method: str, path: str, what: str, schema: str = "", **request: Any) -> Any:
        """Return the answer's JSON. `what` describes the request in errors."""
        # Imported here, because a job that writes JSON does not need it.
        import httpx2

        try:
            with closing(_client(self._settings)) as client:
                answer = client.request(method, self._settings.url + path, **request)
                if answer.is_success:
                    return answer.json()
        except (httpx2.HTTPError, ValueError) as error:
            raise ServerUnreachable(
                f"Apicurio's registry {without_password(self._settings.url)} does not answer {what}:"
                f" {type(error).__name__} {error}",
                "Check apicurio.registry.url of key.converter and value.converter, and that the registry runs there.",
            ) from error
        raise self._refusal(what, schema, answer.status_code, _reason(answer.text))

    def _refusal(self, what: str, schema: str, status: int, reason: str) -> IncsnapError:
        """Return the error for the registry's HTTP status."""
        refusal = (
            f"Apicurio's registry {without_password(self._settings.url)} refused {what}: {reason} (status {status})"
        )
        if may_pass(status):
            return ServerUnreachable(refusal)
        if status in (401, 403):
            return ConfigError(
                refusal, "Check apicurio.auth.* of key.converter and value.converter, and the user's rights."
            )
        if status == 404 and schema:
            return _unknown(what, reason, schema)
        return SinkRefused(
            refusal, f"Change the table in a way that the registry's rules allow. The schema is:\n{schema}"
        )


def _client(settings: ApicurioSettings) -> Any:
    """Return a client of the HTTP library. Its login is a token, or a name and a password, or none."""
    import httpx2

    if not settings.token_url:
        auth = (settings.user, settings.password) if settings.user else None
        return httpx2.Client(timeout=_SECONDS, auth=auth)
    from authlib.integrations.base_client import OAuthError  # type: ignore[import-untyped]
    from authlib.integrations.httpx_client import OAuth2Client  # type: ignore[import-untyped]

    client = OAuth2Client(
        settings.client_id, settings.client_secret, scope=settings.scope or None, timeout=_SECONDS, leeway=0
    )
    try:
        client.fetch_token(settings.token_url, grant_type="client_credentials")
    except OAuthError as error:
        client.close()
        raise ConfigError(
            f"{without_password(settings.token_url)} gives no token: {error}",
            "Check apicurio.auth.client.id and apicurio.auth.client.secret.",
        ) from error
    except httpx2.HTTPStatusError as error:
        client.close()
        status = error.response.status_code
        if may_pass(status):
            raise
        raise ConfigError(
            f"{without_password(settings.token_url)} gives no token: status {status}",
            "Check apicurio.auth.service.token.endpoint.",
        ) from error
    return client


def _unknown(what: str, reason: str, schema: str) -> SinkRefused:
    return SinkRefused(
        f"Apicurio's registry refused {what}: {reason}",
        f"Set apicurio.registry.auto-register=true, or register this schema by hand:\n{schema}",
    )


def _reason(text: str) -> str:
    try:
        answer = json.loads(text)
        # The API v2 has a message, v3 a title.
        return str(answer.get("message") or answer["title"])
    except (ValueError, KeyError, TypeError, AttributeError):
        return text[:200]


def _part(name: str) -> str:
    return quote(name, safe="")
