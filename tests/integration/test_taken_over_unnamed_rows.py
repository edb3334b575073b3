"""The take-over of a connector whose server leaves the names of columns out of its binlog."""

from __future__ import annotations

import pytest

from incsnap.checkpoint.files import Files
from incsnap.checkpoint.taken_over import write_taken_over
from incsnap.errors import ConfigError
from incsnap.mysql.watermarks import executed, high_watermark
from incsnap.takeover.connector_offset import ConnectorOffset
from incsnap.takeover.join import join
from incsnap.takeover.offset_place import STOP_CLEANLY
from tests.support.minimal_shop import Shop

pytestmark = pytest.mark.servers


def test_rows_before_an_alter_table_are_refused_because_a_job_would_stop_at_them(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    offset = ConnectorOffset(executed(shop.connection), *high_watermark(shop.connection))
    shop.run("INSERT INTO t VALUES (1, 'a', NULL, NULL)")
    join(shop.settings, offset)
    shop.run("ALTER TABLE t DROP COLUMN a")

    with pytest.raises(ConfigError, match="ALTER TABLE t DROP COLUMN a") as refused:
        join(shop.settings, offset)

    assert refused.value.hint == STOP_CLEANLY
    monkeypatch.setattr("incsnap.takeover.join.refuse_redefined", lambda *_: None)
    write_taken_over(Files(str(shop.root)), join(shop.settings, offset).place)
    shop.stops("ALTER TABLE t DROP COLUMN a")


def test_an_alter_table_before_the_offset_is_taken_over(shop: Shop) -> None:
    shop.run("INSERT INTO t VALUES (1, 'a', NULL, NULL)", "ALTER TABLE t DROP COLUMN a")
    offset = ConnectorOffset(executed(shop.connection), *high_watermark(shop.connection))
    shop.run("INSERT INTO t VALUES (2, 'b', 'x')")

    write_taken_over(Files(str(shop.root)), join(shop.settings, offset).place)

    assert shop.until("t", 1) == [{"id": 2, "b": "b", "e": "x"}]
