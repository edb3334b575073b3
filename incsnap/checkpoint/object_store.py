"""The object store clients of a process, one for each bucket.

A client keeps its connections. Many callers know only a file's location. So whoever has read the settings (the command,
the planner, each task) sets the access to the bucket once in a process.

pyarrow's client is not used. It has no conditional writes (for the lease), it completes a file whose writer has failed,
and it sends two or three requests where one is enough (docs/adr/0015-object-store.md).
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import urlparse

from incsnap.config.object_store import StoreAccess
from incsnap.errors import ConfigError, StoreFailed, StoreRefused, shorten

if TYPE_CHECKING:
    from obstore.store import S3Config, S3Store

#: Seconds for one answer, and for all attempts of one request. A batch waits so long, and is then repeated.
_ANSWER_SECONDS, _PATIENCE_SECONDS = 60, 60
_NO_BUCKET = "Make the bucket, or correct checkpoint.location."
_REFUSED = "May the job's credentials (spark.hadoop.fs.s3a.access.key and .secret.key, or AWS_*) read and write there?"
_MISSING = "Install it on each machine of the job: pip install 'incsnap[s3]'"

_lock = threading.Lock()
_access: dict[str, StoreAccess] = {}
_clients: dict[str, Any] = {}


def set_access(location: str, access: StoreAccess) -> None:
    """Set the access to the bucket of `location` for this process."""
    bucket = urlparse(location).netloc
    with _lock:
        if _access.get(bucket) != access:
            _access[bucket] = access
            _clients.pop(bucket, None)


def client_of(location: str) -> tuple[S3Store, str]:
    """Return the client of the bucket of `location`, and the path in the bucket.

    Raise ConfigError if the library obstore is missing.
    """
    url = urlparse(location)
    with _lock:
        client = _clients.get(url.netloc)
        if client is None:
            client = _clients[url.netloc] = _client(url.netloc, _access.get(url.netloc, StoreAccess()))
    return client, url.path.strip("/")


def _client(bucket: str, access: StoreAccess) -> S3Store:
    """Return a new client of the bucket. Raise ConfigError if the library obstore is missing."""
    try:
        from obstore.store import S3Store
    except ImportError:
        raise ConfigError(f"Access to the bucket {bucket} needs the Python package obstore", _MISSING) from None
    endpoint, virtual = access.endpoint, not access.path_style
    if endpoint and virtual:
        # As in s3a the bucket becomes part of the host's name.
        scheme, _, host = endpoint.partition("://")
        endpoint = f"{scheme}://{bucket}.{host}"
    config: dict[str, Any] = {
        "access_key_id": access.access_key.get_secret_value(),
        "secret_access_key": access.secret_key.get_secret_value(),
        "session_token": access.session_token.get_secret_value(),
        "endpoint": endpoint,
        "region": access.region,
    }
    return S3Store(
        bucket,
        config=cast("S3Config", {name: value for name, value in config.items() if value}),
        virtual_hosted_style_request=virtual,
        client_options={"timeout": timedelta(seconds=_ANSWER_SECONDS), "allow_http": True},
        retry_config={"max_retries": 5, "retry_timeout": timedelta(seconds=_PATIENCE_SECONDS)},
    )


@contextmanager
def store_failures(doing: str) -> Iterator[None]:
    """Raise StoreFailed, or StoreRefused, for errors of the library in the block. `doing` begins the message.

    Pass on the errors that a caller may expect: the object does not exist, or a condition on it does not hold.
    """
    from obstore.exceptions import (
        AlreadyExistsError,
        BaseError,
        PermissionDeniedError,
        PreconditionError,
        UnauthenticatedError,
    )

    try:
        yield
    except FileNotFoundError as error:
        if "NoSuchBucket" in str(error):
            raise StoreRefused(f"{doing}: there is no such bucket", _NO_BUCKET) from None
        raise
    except (AlreadyExistsError, PreconditionError):
        raise
    except (PermissionDeniedError, UnauthenticatedError) as error:
        raise StoreRefused(f"{doing}: refused ({_code(error)})", _REFUSED) from None
    except BaseError as error:
        raise StoreFailed(f"{doing}: {_code(error)}") from None


def _code(error: Exception) -> str:
    """Return the store's error code, or a short reason if there was no answer.

    The whole text is long and may contain the signature of a request.
    """
    text = str(error).partition("\n")[0]
    code = re.search(r"<Code>(\w+)</Code>", text)
    status = re.search(r"status code: (\d+ [A-Za-z ]+)", text)
    if code is not None:
        return code[1]
    return status[1].strip() if status is not None else shorten(text.rpartition(" - ")[2] or text)
