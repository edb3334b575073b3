"""incsnap: change data capture for MySQL on PySpark Structured Streaming.

What a Python user needs::

    settings = incsnap.load("shop.properties")
    query = incsnap.start(spark, settings)  # a StreamingQuery
    incsnap.stop(query, settings)  # at a batch's end

    incsnap.register(spark)  # changes as a DataFrame: docs/spark.md
    spark.readStream.format("incsnap").option("config", "shop.properties").option("table", "shop.orders").load()

Each name is imported when it is first asked for: PySpark takes half a second, which ``incsnap --help`` must not wait.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

__version__ = "0.1.0"
__all__ = ["Settings", "__version__", "load", "register", "start", "stop"]

if TYPE_CHECKING:
    from incsnap.config.load import load
    from incsnap.config.settings import Settings
    from incsnap.spark.frames import register
    from incsnap.spark.job import start, stop

_PLACES = {
    "Settings": "incsnap.config.settings",
    "load": "incsnap.config.load",
    "register": "incsnap.spark.frames",
    "start": "incsnap.spark.job",
    "stop": "incsnap.spark.job",
}


def __getattr__(name: str) -> object:
    if name not in _PLACES:
        raise AttributeError(f"module 'incsnap' has no attribute {name!r}")
    return getattr(import_module(_PLACES[name]), name)
