"""Debezium's property names become typed, validated settings."""

from incsnap.config.load import load
from incsnap.config.settings import Settings

__all__ = ["Settings", "load"]
