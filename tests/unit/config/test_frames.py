"""The settings of a DataFrame of changes: a file, options above it, and what belongs to Kafka put aside."""

from __future__ import annotations

from pathlib import Path

import pytest

from incsnap.config.frames import frame_settings, of_table
from incsnap.config.load import from_properties
from incsnap.config.record_form import record_form
from incsnap.config.settings import Settings
from incsnap.errors import ConfigError
from incsnap.tables import TableId

FILE = """
database.hostname=h
database.user=u
topic.prefix=shop
database.server.id=7
table.include.list=inventory.*
checkpoint.location=/var/lib/shop
snapshot.mode=no_data
tombstones.on.delete=true
signal.enabled.channels=source
signal.data.collection=inventory.signals
"""


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "shop.properties"
    path.write_text(FILE)
    return str(path)


def settings(**options: str) -> Settings:
    return frame_settings({name.replace("__", "."): value for name, value in options.items()}).settings


def test_a_job_and_the_streams_of_its_tables_may_share_a_file(file: str) -> None:
    orders, lines = (settings(config=file, table=f"inventory.{name}") for name in ("orders", "lines"))
    every = settings(config=file)

    assert orders.checkpoint_location == "/var/lib/shop/frames/inventory.orders"
    assert every.checkpoint_location == "/var/lib/shop/frames/several-tables"
    assert len({7, orders.mysql.server_id, lines.mysql.server_id, every.mysql.server_id}) == 4


def test_one_table_is_captured_whatever_the_lists_say(file: str) -> None:
    tables = settings(config=file, table="other.orders").tables

    assert tables.included(TableId("other", "orders"))
    assert not tables.included(TableId("inventory", "orders"))
    assert tables.included(TableId("inventory", "signals"))


def test_a_name_may_have_dots_in_it(file: str) -> None:
    chosen = settings(config=file, table="`the.db`.`a``b.c`")

    assert chosen.frame is not None
    assert chosen.frame.table == TableId("the.db", "a`b.c")
    assert chosen.tables.included(TableId("the.db", "a`b.c"))


def test_options_stand_above_the_file_in_small_letters_too(file: str) -> None:
    chosen = settings(
        config=file, table="i.o", database__hostname="other", checkpoint__location="/here", database__server__id="9"
    )

    assert (chosen.mysql.hostname, chosen.checkpoint_location, chosen.mysql.server_id) == ("other", "/here", 9)
    assert settings(config=file, signal__kafka__groupid="mine").signals.kafka_group_id == "mine"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"table": "orders"}, "is not of the form database.table"),
        ({"table": "a.b.c"}, "a name with dots in it in back-ticks"),
        ({"envelope": "true"}, "envelope=true needs the option table"),
        ({"envelope": "yes", "table": "i.o"}, "'yes' is not true or false"),
        ({"column__mask__hash__sha-256__with__salt__x": "i.o.c"}, "Spark passes names of options in lower case"),
        ({"signal__enabled__channels": "kafka"}, "no brokers are set"),
    ],
)
def test_what_cannot_be_is_said(file: str, options: dict[str, str], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        settings(config=file, **options)


def test_transforms_are_refused_where_they_would_have_changed_rows(file: str) -> None:
    unwrap = {"transforms": "u", "transforms__u__type": "io.debezium.transforms.ExtractNewRecordState"}

    assert settings(config=file, **unwrap).transforms
    with pytest.raises(ConfigError, match="a DataFrame of one table has no such records"):
        settings(config=file, table="i.o", **unwrap)


def test_windows_of_other_columns_are_of_another_form_and_kafkas_form_is_as_it_was(file: str) -> None:
    chosen = settings(config=file, table="i.o")
    to_kafka = from_properties(
        {"database.hostname": "h", "database.user": "u", "topic.prefix": "p", "bootstrap.servers": "k:1"}, {}
    ).settings

    table = TableId("i", "o")
    assert record_form(of_table(chosen, table, "a")) != record_form(of_table(chosen, table, "b"))
    assert to_kafka.frame is None


def test_a_job_to_kafka_still_needs_its_brokers() -> None:
    with pytest.raises(ConfigError, match=r"bootstrap\.servers: missing"):
        from_properties({"database.hostname": "h", "database.user": "u", "topic.prefix": "p"}, {})
