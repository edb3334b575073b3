"""The interfaces to Spark. `merge_into` is for users; it is imported on first use, because PySpark imports slowly."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

__all__ = ["merge_into"]

if TYPE_CHECKING:
    from incsnap.spark.merging import merge_into


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module 'incsnap.spark' has no attribute {name!r}")
    return getattr(import_module("incsnap.spark.merging"), name)
