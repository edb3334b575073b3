"""Typed, validated settings from files with Debezium's property names."""

from incsnap.config.load import load
from incsnap.config.settings import Settings

__all__ = ["Settings", "load"]
