"""The topics that a take-over reads, where several tables share one."""

from __future__ import annotations

import pytest

from incsnap.tables import Column, TableId, TableShape
from incsnap.takeover.joined_topics import joined_topics
from tests.support.job_settings import loaded_with

_TABLES = [TableId("shop", name) for name in ("orders", "parcels")]
_SHAPES = {table: TableShape(table, (Column("id", "int"),), (0,)) for table in _TABLES}


@pytest.mark.parametrize("table", ["orders", "parcels"])
def test_one_table_behind_a_read_to_insert_makes_the_operation_of_its_whole_topic_say_less(table: str) -> None:
    settings = loaded_with(
        transforms="inserted,one",
        transforms__inserted__type="io.debezium.connector.mysql.transforms.ReadToInsertEvent",
        transforms__inserted__predicate="some",
        predicates="some",
        predicates__some__type="TopicNameMatches",
        predicates__some__pattern=rf".*\.{table}",
        transforms__one__type="org.apache.kafka.connect.transforms.RegexRouter",
        transforms__one__regex=".*",
        transforms__one__replacement="one",
    ).settings
    joined = joined_topics(settings, _SHAPES, [])
    assert (list(joined.forms), joined.warnings) == (["one"], ())
    assert not joined.forms["one"].op_tells_reads
