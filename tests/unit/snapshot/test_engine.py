"""Tests of the engine, case by case. `tests/property` tests its rules under crashes and concurrency."""

from __future__ import annotations

from dataclasses import replace

from incsnap.events import BinlogPosition, SchemaChange
from incsnap.snapshot.commands import DataCollection, Execute
from incsnap.snapshot.context import SnapshotContext
from incsnap.snapshot.engine import awaited
from incsnap.snapshot.notifications import Notification
from incsnap.snapshot.questions import Describe, KeyOrder, Refused
from incsnap.snapshot.window import ChunkResult
from tests.support.snapshots import SERVER, A, B, Snapshots, execute, position, spans


def test_two_chunks_of_one_table_are_read_in_one_batch_and_released_in_the_next() -> None:
    job = Snapshots({A: [1, 2, 3, 4, 5]})

    first = job.batch(execute("s", A)).context
    second = job.batch().context
    third = job.batch().context

    assert spans(first.planned) == [("a", None, "2"), ("a", "2", "4")]
    assert spans(second.released) == [("a", None, "2"), ("a", "2", "4")]
    assert spans(second.planned) == [("a", "4", "5")]
    assert spans(third.released) == [("a", "4", "5")]


def test_the_end_of_a_table_is_told_by_the_batch_after_its_last_rows() -> None:
    job = Snapshots({A: [1, 2], B: [1, 2]})
    job.batch(execute("s", A))
    job.batch(execute("t", B))

    (sent,) = job.context.released
    assert sent.is_last
    assert job.context.active
    assert ("s", "COMPLETED", "") not in job.notified()
    job.batch()
    assert job.notified()[-1] == ("s", "COMPLETED", "")  # the batch also sends rows of another signal
    assert [release.window.table for release in job.context.released] == [B]


def test_a_signal_is_told_from_start_to_completion() -> None:
    job = Snapshots({A: [1, 2, 3], B: []})
    job.batch(Execute("s", (DataCollection(A), DataCollection(B)), unresolved=("db.nothing",)))
    job.until_done()

    assert job.notified() == [
        ("s", "STARTED", "db.a,db.b,db.nothing"),
        ("s", "TABLE_SCAN_COMPLETED", "UNKNOWN_SCHEMA"),
        ("s", "TABLE_SCAN_COMPLETED", "EMPTY"),
        ("s", "TABLE_SCAN_COMPLETED", "SUCCEEDED"),
        ("s", "COMPLETED", ""),
    ]


def test_a_completed_table_tells_how_many_rows_were_read() -> None:
    job = Snapshots({A: [1, 2, 3]})
    job.batch(execute("s", A))
    log = job.until_done()

    (notification,) = [n for context in log for n in context.notifications if n.type == "TABLE_SCAN_COMPLETED"]
    assert notification.value("prefix")["additional_data"] == {
        "connector_name": "prefix",
        "data_collections": "db.a",
        "scanned_collection": "db.a",
        "total_rows_scanned": "3",
        "status": "SUCCEEDED",
    }


def test_progress_names_the_table_its_maximum_and_the_last_key() -> None:
    job = Snapshots({A: [1, 2, 3, 4, 5]})
    job.batch(execute("s", A))
    notifications = job.batch().context.notifications

    assert notifications == (
        Notification(
            "s",
            "IN_PROGRESS",
            2_000,
            (
                ("data_collections", "db.a"),
                ("current_collection_in_progress", "db.a"),
                ("maximum_key", "5"),
                ("last_processed_key", "4"),
            ),
        ),
    )


def test_a_window_is_held_until_the_end_of_a_batch_has_passed_its_high_watermark() -> None:
    job = Snapshots({A: [1, 2]})
    job.batch(execute("s", A), pos=1_000)  # high watermark: 1100

    assert job.batch(pos=1_099).context.released == ()
    assert job.context.held_tables() == {A}
    assert spans(job.batch(pos=1_100).context.released) == [("a", None, "2")]
    assert job.context.held_tables() == frozenset()


def test_no_more_windows_are_in_flight_than_the_limit() -> None:
    job = Snapshots({A: list(range(100))})
    job.batch(execute("s", A), pos=10)
    for _ in range(5):
        job.batch(pos=10)

    assert len(job.context.in_flight) == job.limits.windows


def test_the_position_to_wait_for_is_the_highest_high_watermark() -> None:
    job = Snapshots({A: [1, 2, 3]})
    job.batch(execute("s", A), pos=10)
    first, second = job.context.planned
    results = {
        first.id: ChunkResult(high_file="binlog.000002", high_pos=4, server_uuid=SERVER),
        second.id: ChunkResult(high_file="binlog.000001", high_pos=900, server_uuid=SERVER),
    }

    assert awaited(job.context, results, SERVER) == BinlogPosition("binlog.000002", 4)
    assert awaited(job.context, results, "other") is None
    assert awaited(job.context, {}, SERVER) is None


def test_the_next_table_begins_while_the_last_window_of_the_former_is_in_flight() -> None:
    job = Snapshots({A: [1, 2], B: [1, 2]})

    assert spans(job.batch(execute("s", A, B)).context.planned) == [("a", None, "2"), ("b", None, "2")]


def test_a_table_is_read_once_for_a_signal_that_names_it_twice() -> None:
    job = Snapshots({A: [1]})
    job.batch(execute("s", A, A))

    assert [request.table for request in job.context.queue] == []
    assert len(job.context.scans) == 1


def test_a_later_signal_for_the_same_table_is_a_request_of_its_own() -> None:
    job = Snapshots({A: [1, 2, 3]})
    job.batch(execute("s", A))
    job.batch(execute("t", A))
    job.until_done()

    assert [note for note in job.notified() if note[1] == "COMPLETED"] == [
        ("s", "COMPLETED", ""),
        ("t", "COMPLETED", ""),
    ]


def test_each_of_several_signals_with_one_id_is_obeyed() -> None:
    job = Snapshots({A: list(range(9)), B: [1, 2]})
    job.batch(execute("s", A))
    plan = job.batch(execute("s", A), execute("s", B))

    assert plan.warnings == ("signal s comes again while a snapshot with this id runs; both are obeyed",) * 2
    job.until_done()
    kinds = [kind for _, kind, _ in job.notified()]
    assert [kinds.count(kind) for kind in ("STARTED", "TABLE_SCAN_COMPLETED", "COMPLETED")] == [3, 3, 3]
    assert {id_ for id_, *_ in job.notified()} == {"s"}
    scanned = [dict(n.fields).get("scanned_collection") for each in job.log for n in each.notifications]
    assert (scanned.count(str(A)), scanned.count(str(B))) == (2, 1)


def test_a_signal_repeated_after_its_snapshot_is_obeyed_with_a_warning() -> None:
    job = Snapshots({A: [1]})
    job.batch(execute("s", A))
    job.until_done()
    plan = job.batch(execute("s", A))

    assert plan.warnings == ("signal s is repeated after its snapshot has finished; obeyed again",)
    assert plan.context.active


def test_a_signal_without_tables_changes_nothing() -> None:
    job = Snapshots({})
    plan = job.batch(Execute("s", ()))

    assert plan.context == SnapshotContext()
    assert plan.warnings == ("signal s asks for no table; ignored",)


def test_a_table_without_a_primary_key_is_refused_by_name() -> None:
    job = Snapshots({A: [1]})
    job.answer = lambda question: Refused("NO_PRIMARY_KEY", "it has no primary key; name a surrogate-key")
    plan = job.batch(execute("s", A))

    assert plan.warnings == ("db.a: NO_PRIMARY_KEY: it has no primary key; name a surrogate-key",)
    assert job.notified()[1:] == [("s", "TABLE_SCAN_COMPLETED", "NO_PRIMARY_KEY"), ("s", "COMPLETED", "")]


def test_condition_and_surrogate_key_reach_the_chunk() -> None:
    job = Snapshots({A: [1]})
    job.batch(Execute("s", (DataCollection(A, "k > 0", "k"),)))
    chunk = job.context.scans[0].chunk(job.context.planned[0])

    assert job.asked[0] == Describe(A, "k", "k > 0", position(100).delivered, asked=1)
    assert (chunk.columns, chunk.condition, chunk.lower, chunk.upper) == (("k",), "k > 0", None, ("1",))


def test_an_order_without_an_index_is_warned_of_once() -> None:
    job = Snapshots({A: [1, 2, 3, 4, 5]})
    job.answer = lambda question: (
        KeyOrder(("aa", "k"), "aa int", index="") if isinstance(question, Describe) else job.truth(question)
    )
    plan = job.batch(Execute("s", (DataCollection(A, surrogate="AA"),)))

    assert plan.warnings == (
        "db.a: no index begins with `aa`, `k`, the order of its surrogate-key AA, so MySQL sorts the table for each"
        " chunk; CREATE INDEX ... ON `db`.`a` (`aa`, `k`) makes it faster",
    )
    alter = SchemaChange(frozenset({A}), "db", "ALTER TABLE a ADD b INT")
    assert job.batch(changes=(alter,)).warnings == ()
    assert [type(question) for question in job.asked].count(Describe) == 2


def test_nothing_to_do_is_idle_and_the_end_of_a_snapshot_is_not() -> None:
    job = Snapshots({A: [1]})

    assert job.batch().idle
    assert not job.batch(execute("s", A)).idle
    assert not job.batch().idle  # rows are released
    assert not job.batch().idle  # told
    assert job.batch().idle  # the batch would only forget the last notifications


def test_nothing_is_done_while_chunks_are_read() -> None:
    job = Snapshots({A: [1, 2, 3, 4]})
    job.result = lambda _: None
    job.batch(execute("s", A))

    assert job.context.planned
    assert job.batch().idle


def test_windows_keep_the_reading_by_which_they_were_judged() -> None:
    job = Snapshots({A: [1, 2]})
    job.batch(execute("s", A), pos=10)
    result = ChunkResult(2, 2, 0.1, "binlog.000001", 500, SERVER, file="first")
    job.result = lambda window: result
    job.batch(pos=20)
    job.result = lambda window: replace(result, high_pos=15, file="second")

    assert job.batch(pos=30).context.released == ()
    released = job.batch(pos=500).context.released
    assert [release.window.result for release in released] == [result]
