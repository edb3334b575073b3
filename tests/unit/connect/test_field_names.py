"""Names made fit for Avro; the expected names are what Debezium's rules give for them."""

from __future__ import annotations

import pytest

from incsnap.config.servers import KafkaSettings, MySqlSettings
from incsnap.config.settings import Settings
from incsnap.config.topics import topic_of
from incsnap.connect.field_names import adjust, adjust_field
from incsnap.tables import TableId


@pytest.mark.parametrize(
    ("name", "avro", "avro_unicode"),
    [
        ("plain", "plain", "plain"),
        ("Ab9", "Ab9", "Ab9"),
        ("a_b", "a_b", "a_u005fb"),
        ("a-b", "a_b", "a_u002db"),
        ("a.b", "a_b", "a_u002eb"),
        ("9a", "_9a", "_u0039a"),
        ("-a", "_a", "_u002da"),
        ("größe", "gr__e", "gr_u00f6_u00dfe"),
        ("λ", "_", "_u3bb"),
        ("列1", "_1", "_u52171"),
        ("a\t", "a_", "a_u009"),
        ("😀x", "__x", "_ud83d_ude00x"),
        ("٣x", "_٣x", "_u663x"),
        ("²", "_", "_u00b2"),
        ("", "", ""),
    ],
)
def test_a_field_gets_the_name_debezium_gives_it(name: str, avro: str, avro_unicode: str) -> None:
    assert adjust_field(name, "none") == name
    assert adjust_field(name, "avro") == avro
    assert adjust_field(name, "avro_unicode") == avro_unicode


def test_dots_stay_in_the_names_of_schemas_but_not_before_them() -> None:
    assert adjust("shop-1.db.t x.Value", "avro") == "shop_1.db.t_x.Value"
    assert adjust("shop-1.a_b.Value", "avro_unicode") == "shop_u002d1.a_u005fb.Value"
    assert adjust(".a", "avro") == "_a"
    assert adjust(".a", "avro_unicode") == "_u002ea"
    assert adjust("1.a", "avro") == "_1.a"


@pytest.mark.parametrize(
    ("unicode", "name"), [(False, "p.d.odd-name____"), (True, "p.d.odd-name_u0020_u00e9_u005f_u6f22")]
)
def test_topics_are_named_by_either_of_debeziums_strategies(unicode: bool, name: str) -> None:
    settings = Settings(
        mysql=MySqlSettings(hostname="h", user="u"),
        kafka=KafkaSettings(bootstrap_servers="k:9092"),
        topic_prefix="p",
        unicode_topics=unicode,
        checkpoint_location="/x",
    )
    assert topic_of(settings, TableId("d", "odd-name é_漢")) == name
