"""incsnap: change data capture for MySQL on PySpark Structured Streaming.

The names for a Python user. A job that writes to Kafka:

    settings = incsnap.Settings.from_file("shop.properties")
    job = incsnap.start(spark, settings)
    job.signal("execute-snapshot", {"data-collections": ["shop.orders"]})
    job.stop()  # at the end of a batch

Changes as a DataFrame, without Kafka (docs/spark.md):

    incsnap.register(spark)
    reader = spark.readStream.format("incsnap").option("config", "shop.properties")
    changes = reader.option("table", "shop.orders").load()
    incsnap.merge_into(changes, "lake.orders").option("checkpointLocation", "/checkpoints/orders").start()

Whether a DataFrame holds what a table holds:

    differences = incsnap.compare(spark, settings, "shop.orders", spark.table("lake.orders"), gtid_set)

Each name is imported when it is first used. PySpark takes half a second to import, and `incsnap --help` must not wait.
"""

from __future__ import annotations

import warnings
from importlib import import_module
from typing import TYPE_CHECKING

from incsnap.version import __version__

__all__ = ["Job", "Settings", "__version__", "compare", "merge_into", "register", "start"]

if TYPE_CHECKING:
    from incsnap.config.load import load as load
    from incsnap.config.settings import Settings
    from incsnap.spark.comparing import compare
    from incsnap.spark.frames import register
    from incsnap.spark.merging import merge_into
    from incsnap.spark.session_job import Job, start
    from incsnap.spark.session_job import stop as stop

_PLACES = {
    "Job": "incsnap.spark.session_job",
    "Settings": "incsnap.config.settings",
    "compare": "incsnap.spark.comparing",
    "load": "incsnap.config.load",
    "merge_into": "incsnap.spark.merging",
    "register": "incsnap.spark.frames",
    "start": "incsnap.spark.session_job",
    "stop": "incsnap.spark.session_job",
}
#: Names that go with the next release, and what replaces them.
_OLDER = {"load": "incsnap.Settings.from_file(path)", "stop": "job.stop()"}


def __getattr__(name: str) -> object:
    """Import a public name when it is first used. Raise AttributeError for another name."""
    if name not in _PLACES:
        raise AttributeError(f"module 'incsnap' has no attribute {name!r}")
    if name in _OLDER:
        warnings.warn(
            f"incsnap.{name} goes with the next release. Use {_OLDER[name]}", DeprecationWarning, stacklevel=2
        )
    return getattr(import_module(_PLACES[name]), name)


def __dir__() -> list[str]:
    """Return the public names, for completion."""
    return __all__
