"""The topic of a table, as Debezium names it: ``<topic.prefix>.<database>.<table>``."""

from __future__ import annotations

import re

from incsnap.tables import TableId

#: What Kafka refuses in a topic's name.
INVALID = re.compile(r"[^a-zA-Z0-9._-]")
#: Kafka's bound for a topic's name.
_LONGEST = 249


def topic_name(prefix: str, delimiter: str, table: TableId) -> str:
    """Characters that Kafka refuses become ``_``; at most 249 are kept. Two tables may so share a topic, as in
    Debezium.
    """
    return INVALID.sub("_", delimiter.join((prefix, table.database, table.table)))[:_LONGEST]
