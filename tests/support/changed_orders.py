"""A whole job whose table is changed while a snapshot of it runs, for tests of converters."""

from __future__ import annotations

from collections.abc import Mapping

from incsnap.tables import TableId
from lab.captured_database import CapturedDatabase
from lab.table_designs import ORDERS
from tests.support.delivery import plan_all_changes


def changed_orders(play: CapturedDatabase, settings: Mapping[str, str], rows: int) -> tuple[TableId, dict[int, int]]:
    """Run a job to the end of a snapshot, beside updates and deletions, and stop it.

    Return the table, and its column `qty` by key as the server has it then.
    """
    orders = play.create(ORDERS, rows)
    more = {
        "incremental.snapshot.chunk.size": "200",
        "topic.creation.default.partitions": "1",
        "notification.enabled.channels": "log",
    }
    with play.job({**settings, **more}) as job:
        job.wait_until_streaming()
        with play.connect() as connection, connection.cursor() as cursor:
            play.execute_by_row("all", [orders])
            cursor.execute(f"UPDATE {orders.sql} SET qty = 77 WHERE id < 20")
            cursor.execute(f"DELETE FROM {orders.sql} WHERE id BETWEEN 20 AND 29")
            cursor.execute(f"SELECT id, qty FROM {orders.sql}")
            expected = dict(cursor.fetchall())
            job.wait_until("the snapshot is over", lambda: "type='COMPLETED'" in job.log_tail(400), every=0.3)
        # The snapshot of a quick job may end before the last of these changes is written.
        plan_all_changes(play, job)
        job.stop()
    return orders, expected
