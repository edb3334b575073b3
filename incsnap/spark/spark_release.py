"""The differences between Spark 4.1 and later releases: Python sources of Spark 4.1 have no admission control.

There `latestOffset` does not get the offset at which the batch begins. A DataFrame works without it, because some lake
formats have no release for a newer Spark. A job needs it.
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING

import pyarrow as pa
import pyspark
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema
from pyspark.sql.types import StructType

from incsnap.errors import ConfigError

#: Whether this Spark has admission control for Python sources (4.2 and later).
HAS_ADMISSION_CONTROL = find_spec("pyspark.sql.streaming.datasource") is not None

if TYPE_CHECKING or HAS_ADMISSION_CONTROL:
    from pyspark.sql.streaming.datasource import SupportsTriggerAvailableNow as SupportsTriggerAvailableNow
else:

    class SupportsTriggerAvailableNow:
        """A substitute for Spark 4.1, which does not know it: a query that ends by itself ends after its first batch
        there."""


def require_admission_control() -> None:
    """Raise ConfigError if this Spark is too old for a job."""
    if not HAS_ADMISSION_CONTROL:
        raise ConfigError(
            f"A job that writes to Kafka needs Spark 4.2 or 4.3, and this is Spark {pyspark.__version__}",
            "Install pyspark >=4.2, <4.4 for jobs, in an environment of their own. Spark 4.1 can only run DataFrames.",
        )


def spark_schema(schema: pa.Schema) -> StructType:
    """Return the Arrow schema for Spark.

    A timestamp without a zone stays without one, which Spark 4.1 has to be told.
    """
    return from_arrow_schema(schema, prefer_timestamp_ntz=True)


def arrow_schema(schema: StructType) -> pa.Schema:
    """Return the Spark schema in Arrow, with timestamps in UTC."""
    return to_arrow_schema(schema, timezone="UTC") if HAS_ADMISSION_CONTROL else to_arrow_schema(schema)
