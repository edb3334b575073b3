"""incsnap: change data capture for MySQL on PySpark Structured Streaming."""

__version__ = "0.1.0"
