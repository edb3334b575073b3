"""The options of Apicurio's converters (`value.converter.apicurio.*`).

The defaults are those of the converters of Apicurio 2. Those of Apicurio 3 differ, so an address of its REST API
(`/apis/registry/v3`) needs the options that decide where the id stands.
https://www.apicur.io/registry/docs/apicurio-registry/2.6.x/getting-started/assembly-configuring-kafka-client-serdes.html
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from incsnap.config.names import words
from incsnap.config.secrets import without_password
from incsnap.errors import ConfigError

PREFIX = "apicurio."
#: Option with the registry's address.
URL = "apicurio.registry.url"

_REGISTRY = "apicurio.registry."
_HEADERS, _USE_ID = f"{_REGISTRY}headers.enabled", f"{_REGISTRY}use-id"
_HANDLER, _CONFLUENT = f"{_REGISTRY}id-handler", f"{_REGISTRY}as-confluent"
#: Class of `id-handler` -> bytes of the id.
_HANDLERS = {"DefaultIdHandler": 8, "Legacy8ByteIdHandler": 8, "Legacy4ByteIdHandler": 4, "Default4ByteIdHandler": 4}
#: Options with the only value that is supported.
_FIXED = {
    "artifact-resolver-strategy": "TopicIdStrategy",
    "avro.encoding": "BINARY",
    "auto-register.if-exists": "RETURN_OR_UPDATE",
    "headers.handler": "DefaultHeadersHandler",
    "schema-resolver": "DefaultSchemaResolver",
    "avro-datum-provider": "DefaultAvroDatumProvider",
}
_SAME_IN_3 = {"auto-register.if-exists": "FIND_OR_CREATE_VERSION"}
_IDLE = words(
    """
    check-period-ms retry-count retry-backoff-ms cache-latest fault-tolerant-refresh dereference-schema
    serializer.dereference-schema deserializer.dereference-schema use-specific-avro-reader fallback.group-id
    fallback.artifact-id fallback.version fallback.provider
    """
)
_AUTH = {
    "apicurio.auth.username": "user",
    "apicurio.auth.password": "password",
    "apicurio.auth.service.token.endpoint": "token_url",
    "apicurio.auth.client.id": "client_id",
    "apicurio.auth.client.secret": "client_secret",
    "apicurio.auth.client.scope": "scope",
}


@dataclass(frozen=True, slots=True)
class ApicurioSettings:
    """The options of one converter. Texts are "" where an option is missing."""

    url: str = ""  #: of the REST API, such as http://host:port/apis/registry/v2
    auto_register: bool = False  #: apicurio.registry.auto-register
    latest: bool = False  #: apicurio.registry.find-latest
    group: str = "default"  #: apicurio.registry.artifact.group-id
    use_id: str = "globalId"  #: globalId or contentId
    in_headers: bool = True  #: whether the id is in a header of the record
    id_bytes: int = 8  #: length of the id before the record, 4 or 8
    user: str = ""  #: name for a basic login; "" for none
    password: str = field(default="", repr=False)  #: password of a basic login
    token_url: str = ""  #: address that gives tokens of OAuth
    client_id: str = ""  #: OAuth's client id
    client_secret: str = field(default="", repr=False)  #: secret of the OAuth client
    scope: str = ""  #: scope of the tokens that are asked for; "" for the default
    idle: tuple[str, ...] = ()  #: options without effect here
    unknown: tuple[str, ...] = ()  #: options that no such converter has, as far as is known

    @property
    def is_third(self) -> bool:
        """Return True if the registry's API is that of Apicurio 3."""
        return self.url.endswith("/v3")

    @property
    def frame(self) -> str:
        """Return where the id stands, as in `FormatChoice.frame`."""
        if self.in_headers:
            return self.use_id
        return "wide" if self.id_bytes == 8 else ""


def apicurio_settings(given: Mapping[str, str], *, avro: bool) -> ApicurioSettings:
    """Return the options in `given`. `avro`: they are AvroConverter's. Raise ConfigError for an unsupported value."""
    url = given.get(URL, "").rstrip("/")
    if not (url.startswith(("http://", "https://")) and url.endswith(("/apis/registry/v2", "/apis/registry/v3"))):
        raise ConfigError(
            f"{URL}={without_password(url)} is not of the form http://host:port/apis/registry/v2, or .../v3"
        )
    if avro and url.endswith("/v3"):
        _require_what_differs(given)
    logins: dict[str, str] = {}
    idle: list[str] = []
    unknown: list[str] = []
    for name, value in given.items():
        short = name.removeprefix(_REGISTRY)
        if name in _AUTH:
            logins[_AUTH[name]] = value
        elif short in _FIXED:
            _fixed(name, short, value)
        elif name.startswith(f"{_REGISTRY}request.ssl."):
            raise ConfigError(
                f"{name} of Apicurio's converter is not known",
                "Give the authority's certificate as a PEM file in the environment's variable SSL_CERT_FILE.",
            )
        elif name.startswith((f"{_REGISTRY}artifact.", f"{_REGISTRY}headers.")) and name not in _KNOWN:
            raise ConfigError(f"{name} of Apicurio's converter is not known", f"Remove {name}.")
        elif name not in _KNOWN:
            (idle if short in _IDLE or name == "schemas.enable" else unknown).append(name)
    if given.get(f"{PREFIX}auth.realm") or given.get(f"{PREFIX}auth.service.url"):
        raise ConfigError(
            "apicurio.auth.realm and apicurio.auth.service.url of Apicurio's converter are not known",
            "Set apicurio.auth.service.token.endpoint to the address that gives tokens.",
        )
    if ("token_url" in logins) != ("client_id" in logins):
        raise ConfigError("apicurio.auth.service.token.endpoint and apicurio.auth.client.id belong together")
    return ApicurioSettings(
        url=url,
        auto_register=_flag(given, f"{_REGISTRY}auto-register", "false"),
        latest=_flag(given, f"{_REGISTRY}find-latest", "false"),
        group=given.get(f"{_REGISTRY}artifact.group-id") or "default",
        use_id=_use_id(given) if avro else "globalId",
        in_headers=_flag(given, _HEADERS, "true"),
        id_bytes=_id_bytes(given),
        idle=tuple(idle),
        unknown=tuple(unknown),
        **logins,
    )


_KNOWN = (
    *(URL, _HEADERS, _USE_ID, _HANDLER, _CONFLUENT, f"{_REGISTRY}auto-register", f"{_REGISTRY}find-latest"),
    *(f"{_REGISTRY}artifact.group-id", f"{PREFIX}auth.realm", f"{PREFIX}auth.service.url"),
)


def _require_what_differs(given: Mapping[str, str]) -> None:
    missing = [name for name in (_HEADERS, _USE_ID) if name not in given]
    if given.get(_HEADERS, "").lower() == "false" and not {_HANDLER, _CONFLUENT} & set(given):
        missing.append(_HANDLER)
    if missing:
        raise ConfigError(
            f"With the API v3, {' and '.join(missing)} must be given",
            "The defaults of Apicurio 2 and 3 differ. Set what the consumers read.",
        )


def _use_id(given: Mapping[str, str]) -> str:
    value = given.get(_USE_ID, "globalId")
    if value not in ("globalId", "contentId"):
        raise ConfigError(f"{_USE_ID}={value} is neither globalId nor contentId")
    return value


def _id_bytes(given: Mapping[str, str]) -> int:
    handler = given.get(_HANDLER, "DefaultIdHandler").rpartition(".")[2]
    if handler not in _HANDLERS:
        raise ConfigError(f"{_HANDLER}={given[_HANDLER]} is not known; known are {', '.join(sorted(_HANDLERS))}")
    return 4 if _flag(given, _CONFLUENT, "false") else _HANDLERS[handler]


def _flag(given: Mapping[str, str], name: str, default: str) -> bool:
    value = given.get(name, default).lower()
    if value not in ("true", "false"):
        raise ConfigError(f"{name}={given[name]} is neither true nor false")
    return value == "true"


def _fixed(name: str, short: str, value: str) -> None:
    if value.rpartition(".")[2] not in (_FIXED[short], _SAME_IN_3.get(short)):
        raise ConfigError(f"{name}={value} is not known; {_FIXED[short]} is")
