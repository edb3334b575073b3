"""Access to an object store: one set of values for Spark and for incsnap's own reads and writes.

The names are those of Spark's `s3a`, for example `spark.hadoop.fs.s3a.endpoint`. One bucket may have its own value
(`spark.hadoop.fs.s3a.bucket.NAME.endpoint`). Without these properties the usual environment variables of AWS clients
are read. Without both, each process uses the role of its machine.
"""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import urlparse

from pydantic import SecretStr

from incsnap.config.frozen import Frozen
from incsnap.config.secrets import Secret

_S3A = "spark.hadoop.fs.s3a."
#: The region that s3a uses for an endpoint without a region.
_REGION = "us-east-1"


class StoreAccess(Frozen):
    """Credentials and address of an object store. An empty text means not given."""

    access_key: Secret = SecretStr("")
    secret_key: Secret = SecretStr("")
    session_token: Secret = SecretStr("")
    endpoint: str = ""  #: a URL
    region: str = ""
    path_style: bool = False  #: whether the bucket is in the path of URLs, not in the host name

    def for_spark(self) -> dict[str, str]:
        """Return the values as Spark properties, so that values from the environment apply to s3a as well."""
        given = {
            "access.key": self.access_key.get_secret_value(),
            "secret.key": self.secret_key.get_secret_value(),
            "session.token": self.session_token.get_secret_value(),
            "endpoint": self.endpoint,
            "endpoint.region": self.region,
            "path.style.access": "true" if self.path_style else "",
        }
        return {_S3A + name: value for name, value in given.items() if value}


def is_object_store(location: str) -> bool:
    """Return True if `location` is in a bucket of S3 or of a compatible store."""
    return urlparse(location).scheme in ("s3", "s3a", "s3n")


def same_bucket(one: str, other: str) -> bool:
    """Return True if both locations are in one bucket."""
    return is_object_store(one) and is_object_store(other) and urlparse(one).netloc == urlparse(other).netloc


def store_access(location: str, spark: Mapping[str, str], environment: Mapping[str, str]) -> StoreAccess:
    """Return the access to the bucket of `location`. `spark` holds the user's `spark.*` properties.

    Return an empty value if `location` is not in a bucket.
    """
    if not is_object_store(location):
        return StoreAccess()
    bucket = urlparse(location).netloc

    def given(name: str, *variables: str) -> str:
        for property_name in (f"{_S3A}bucket.{bucket}.{name}", _S3A + name):
            if spark.get(property_name):
                return spark[property_name]
        return next((environment[each] for each in variables if environment.get(each)), "")

    endpoint = given("endpoint", "AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL")
    if endpoint and "://" not in endpoint:
        plain = given("connection.ssl.enabled").lower() == "false"
        endpoint = f"{'http' if plain else 'https'}://{endpoint}"
    access_key, secret_key = given("access.key"), given("secret.key")
    token = given("session.token") if access_key else ""
    if not access_key:
        # Take all three from one source: a session token belongs to its key.
        access_key, secret_key, token = (
            environment.get(name, "") for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN")
        )
    return StoreAccess(
        access_key=SecretStr(access_key),
        secret_key=SecretStr(secret_key),
        session_token=SecretStr(token),
        endpoint=endpoint,
        region=given("endpoint.region", "AWS_REGION", "AWS_DEFAULT_REGION") or (_REGION if endpoint else ""),
        path_style=given("path.style.access").lower() == "true",
    )
