"""Tokens of Amazon's IAM in place of a password of RDS and Aurora. Each new session needs one, for fifteen minutes.

https://docs.aws.amazon.com/AmazonRDS/latest/UserGuide/UsingWithRDS.IAMDBAuth.html
"""

from __future__ import annotations

import os
import re

from incsnap.config.servers import MySqlSettings
from incsnap.errors import ConfigError

#: Name of an RDS server, with its region.
_HOST = re.compile(r"\.([a-z0-9-]+)\.rds\.amazonaws\.com")


def token(settings: MySqlSettings) -> str:
    """Return a new token for a session. Raise ConfigError if Amazon's library, the region or credentials are
    missing."""
    try:
        import boto3
        from botocore.exceptions import BotoCoreError
    except ImportError:
        raise ConfigError(
            "incsnap.database.login=rds-iam needs Amazon's library, which is not installed",
            "pip install 'incsnap[aws]'.",
        ) from None
    named = _HOST.search(settings.hostname)
    region = named[1] if named else os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION")
    if not region:
        raise ConfigError(
            f"incsnap.database.login=rds-iam needs a region, and {settings.hostname} does not have it",
            "Name the server as RDS does, or set the environment's variable AWS_REGION.",
        )
    try:
        client = boto3.client("rds", region_name=region)
        text: str = client.generate_db_auth_token(settings.hostname, settings.port, settings.user)
    except BotoCoreError as error:
        raise ConfigError(
            f"Amazon's IAM gives no token for the user {settings.user}: {error}",
            "Give this machine a role, or set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY.",
        ) from error
    return text
