"""Tests of the queue of chunk orders that readers share."""

from __future__ import annotations

from incsnap.planner.chunk_readers import ReadOrders
from incsnap.planner.order_queue import OrderQueue
from incsnap.tasks.partitions import ChunkOrder
from tests.support.chunk_orders import order


def names(orders: tuple[ChunkOrder, ...]) -> list[str]:
    return [each.read.window.id for each in orders]


def queue_of(*windows: str, often_lost: str = "", replaces_readers: bool = False) -> OrderQueue:
    queue = OrderQueue(1, replaces_readers=replaces_readers)
    queue.obey(ReadOrders(tuple(order(name, 10, lost=2 if name == often_lost else 0) for name in windows), 1))
    return queue


def test_a_reader_takes_its_share_and_a_chunk_that_was_often_lost_alone() -> None:
    queue = queue_of(*"abcd", often_lost="c")
    assert names(queue.take(50_000)) == ["a", "b"]
    queue.obey(ReadOrders((), 2))
    assert names(queue.take(50_000)) == ["c"]


def test_orders_that_a_reader_has_not_come_to_go_to_the_front() -> None:
    queue = queue_of(*"abc")
    taken = queue.take(30)
    queue.obey(ReadOrders((order("d", 10),), 1))

    assert queue.finish(taken, {"a"}) == ("b", "c")
    assert names(queue.take(50_000)) == ["b", "c", "d"]


def test_a_dropped_order_is_neither_read_nor_put_back() -> None:
    queue = queue_of(*"abc")
    taken = queue.take(20)
    assert queue.obey(ReadOrders((), 1, frozenset({"b", "c"}))) == 1

    assert queue.is_wanted(taken)
    assert queue.finish(taken, {"a"}) == ()
    assert not queue.is_wanted(taken)


def test_a_new_reader_replaces_one_whose_order_was_dropped_only_if_the_readers_do_so() -> None:
    for replaces in (True, False):
        queue = queue_of("hung", "b", "c", replaces_readers=replaces)
        hung = queue.take(1)
        queue.obey(ReadOrders((), 1, frozenset({"hung"})))
        if not replaces:
            queue.finish(hung, ())
        assert names(queue.take(1)) == ["b"]
        if replaces:
            queue.finish(hung, ())
            queue.obey(ReadOrders((), 2))
            assert names(queue.take(1)) == ["c"]


def test_a_closed_queue_gives_no_order_even_if_a_reader_puts_some_back() -> None:
    queue = queue_of(*"ab")
    taken = queue.take(50_000)
    queue.close()
    queue.finish(taken, ())
    assert queue.take(50_000) == ()
