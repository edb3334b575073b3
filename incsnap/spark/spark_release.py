"""What Spark 4.1 lacks: its sources in Python have no admission control, ``latestOffset`` is not told where it begins.

A DataFrame does without, for the sake of lakes whose format has no release for a newer Spark; a job does not.
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING

import pyarrow as pa
import pyspark
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema
from pyspark.sql.types import StructType

from incsnap.errors import ConfigError

HAS_ADMISSION_CONTROL = find_spec("pyspark.sql.streaming.datasource") is not None

if TYPE_CHECKING or HAS_ADMISSION_CONTROL:
    from pyspark.sql.streaming.datasource import SupportsTriggerAvailableNow as SupportsTriggerAvailableNow
else:

    class SupportsTriggerAvailableNow:
        """Which is not known there: such a query ends behind its first batch."""


def require_admission_control() -> None:
    """Raises ``ConfigError`` where this Spark is too old for a job."""
    if not HAS_ADMISSION_CONTROL:
        raise ConfigError(
            f"a job that writes to Kafka needs Spark 4.2 or 4.3, and this is Spark {pyspark.__version__}",
            "Install pyspark >=4.2, <4.4 for jobs, in an environment of their own; 4.1 is for DataFrames alone.",
        )


def spark_schema(schema: pa.Schema) -> StructType:
    """``schema`` for Spark; a timestamp without a zone is one that has none, which 4.1 has to be told."""
    return from_arrow_schema(schema, prefer_timestamp_ntz=True)


def arrow_schema(schema: StructType) -> pa.Schema:
    """``schema`` in Arrow, timestamps in UTC."""
    return to_arrow_schema(schema, timezone="UTC") if HAS_ADMISSION_CONTROL else to_arrow_schema(schema)
