"""Logins to Kafka by tokens that incsnap makes: MSK's IAM, which librdkafka knows as OAUTHBEARER.

Amazon's own library signs the tokens, with the credentials that all of Amazon's tools take. A token lives for fifteen
minutes; librdkafka asks for the next one in time.
https://github.com/aws/aws-msk-iam-sasl-signer-python
"""

from __future__ import annotations

import ctypes
import logging
import os
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

from incsnap.config.clients import AMAZON
from incsnap.errors import ConfigError
from incsnap.kafka.producer_errors import ProducerErrors

log = logging.getLogger(__name__)

#: Setting of confluent-kafka's clients: a function that returns a token, and when it ends.
CALLBACK = "oauth_cb"

_NO_LIBRARY = "The login AWS_MSK_IAM needs Amazon's library, which is not installed"
_NO_REGION = "The login AWS_MSK_IAM needs the region of the cluster, and the brokers' addresses do not have it"

#: A function (configuration of OAUTHBEARER) -> (token, when it ends, in seconds since 1970).
Token = Callable[[str], tuple[str, float]]


def with_login(settings: Mapping[str, str]) -> dict[str, Any]:
    """Return the settings for a client of confluent-kafka, with the function that makes tokens if they name it."""
    given: dict[str, Any] = dict(settings)
    if (login := given.pop(AMAZON, None)) is not None:
        given[CALLBACK] = amazon_tokens(login)
    return given


@cache
def amazon_tokens(login: str) -> Token:
    """Return the function that makes tokens. Raise ConfigError if the library or the region is missing."""
    try:
        from aws_msk_iam_sasl_signer import MSKAuthTokenProvider  # type: ignore[import-untyped]
    except ImportError:
        raise ConfigError(_NO_LIBRARY, "pip install 'incsnap[aws]'.") from None
    named, profile, role, session = login.split("|")
    region = named or os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION")
    if not region:
        raise ConfigError(_NO_REGION, "Set the environment's variable AWS_REGION.")

    def token(_configuration: str) -> tuple[str, float]:
        try:
            if role:
                text, ends = MSKAuthTokenProvider.generate_auth_token_from_role_arn(region, role, session or "incsnap")
            elif profile:
                text, ends = MSKAuthTokenProvider.generate_auth_token_from_profile(region, profile)
            else:
                text, ends = MSKAuthTokenProvider.generate_auth_token(region)
        except Exception as error:
            log.warning("Amazon's IAM gives no token for Kafka: %s", error)
            raise
        return str(text), ends / 1000

    return token


class TokenRefresh:
    """The tokens of one librdkafka producer, which its own background thread asks for.

    Create it before the producer, with the producer's configuration `conf`, and keep it as long as the producer.
    """

    def __init__(self, lib: Any, conf: int, token: Token, errors: ProducerErrors) -> None:
        self._lib, self._token, self._errors = lib, token, errors
        #: Kept, because librdkafka has only its address.
        self._callback = REFRESH_CALLBACK(self._refresh)
        lib.rd_kafka_conf_set_oauthbearer_token_refresh_cb(conf, self._callback)
        lib.rd_kafka_conf_enable_sasl_queue(conf, 1)

    def begin(self, rk: int) -> None:
        """Let the background thread of the producer `rk` ask for tokens. Raise ClientError if there is none."""
        self._errors.check(self._lib.rd_kafka_sasl_background_callbacks_enable(rk))

    def _refresh(self, rk: int, configuration: bytes | None, _opaque: int) -> None:
        reason = ctypes.create_string_buffer(512)
        try:
            text, ends = self._token((configuration or b"").decode())
        except Exception as error:  # noqa: BLE001 - whatever the signer raises, the client must hear of it
            self._lib.rd_kafka_oauthbearer_set_token_failure(rk, str(error).encode()[:500])
            return
        failed = self._lib.rd_kafka_oauthbearer_set_token(
            rk, text.encode(), round(ends * 1000), b"incsnap", None, 0, reason, len(reason)
        )
        if failed:
            self._lib.rd_kafka_oauthbearer_set_token_failure(rk, reason.value)


#: void (*oauthbearer_token_refresh_cb)(rd_kafka_t *, const char *configuration, void *opaque)
REFRESH_CALLBACK = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
