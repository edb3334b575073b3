"""Settings that a document of MSK Connect has beside `connectorConfiguration`: name, brokers, and login to Kafka.

Names begin with a small letter in MSK Connect's API, and with a capital letter in CloudFormation.
https://docs.aws.amazon.com/MSKC/latest/mskc/API_CreateConnector.html
https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/aws-resource-kafkaconnect-connector.html
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

#: Beginnings of the settings of both Kafka clients. MSK Connect gives the login to its workers.
_CLIENTS = ("producer.", "signal.consumer.")


def beside(document: Mapping[str, Any], config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings that stand beside the connector's own settings `config`. Missing ones are None."""
    login = _login(
        _text(document, "kafkaClusterClientAuthentication", "authenticationType"),
        _text(document, "kafkaClusterEncryptionInTransit", "encryptionType"),
    )
    clients = [client for client in _CLIENTS if not _has_login(config, client)]
    return {
        "name": _member(document, "connectorName"),
        "bootstrap.servers": _member(document, "kafkaCluster", "apacheKafkaCluster", "bootstrapServers"),
        **{f"{client}{name}": value for client in clients for name, value in login.items()},
    }


def _login(authentication: str, encryption: str) -> dict[str, str]:
    """Return the login as settings of a Kafka client. Amazon's IAM always needs TLS."""
    if authentication == "IAM":
        return {"security.protocol": "SASL_SSL", "sasl.mechanism": "AWS_MSK_IAM"}
    return {"security.protocol": "SSL"} if encryption == "TLS" else {}


def _has_login(config: Mapping[str, Any], client: str) -> bool:
    """Return True if `config` itself says how the client connects."""
    return any(f"{client}{which}security.protocol" in config for which in ("", "override."))


def _text(document: Mapping[str, Any], *names: str) -> str:
    """Return the text behind the keys `names` in capital letters, or "" if there is none."""
    return str(_member(document, *names) or "").strip().upper()


def _member(document: Any, *names: str) -> Any:
    """Return the value behind the keys `names`, or None if there is none."""
    for name in names:
        if not isinstance(document, Mapping):
            return None
        document = document.get(name, document.get(name[0].upper() + name[1:]))
    return document
