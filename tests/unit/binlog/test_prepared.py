"""Tests of the store of prepared XA transactions: names, memory, and what a search beside the stream adds."""

from __future__ import annotations

import numpy as np
import pytest

from incsnap.binlog.prepared import PreparedTransactions
from incsnap.binlog.xa_parts import XaEvents, XaTransaction
from incsnap.events import PreparedXa
from tests.support.parts_in_memory import Parts

A, B = "X'61',X'',1", "X'62',X'',1"


def events(size: int) -> XaEvents:
    return XaEvents(bytes(size), np.array([0, size]), np.zeros(1, np.int64))


def prepared(into: PreparedTransactions, xid: str, size: int = 10, gtid: str = "g:1") -> XaTransaction:
    into.begin(xid, gtid, "binlog.000001")
    into.add(events(size), passed_over=False)
    return into.prepare()


def prepared_before(xid: str, size: int = 10) -> XaTransaction:
    """Return a transaction as the search beside the stream reads it."""
    return prepared(PreparedTransactions().sibling([xid]), xid, size, "g:0")


def content(transactions: PreparedTransactions, transaction: XaTransaction) -> int:
    return sum(len(each.payload) for each in transactions.events(transaction))


def test_a_name_that_is_prepared_again_leaves_no_memory_of_the_one_before() -> None:
    store = Parts()
    transactions = PreparedTransactions(store, memory_bytes=100)
    for _ in range(50):  # its XA ROLLBACK ran with sql_log_bin=0
        prepared(transactions, A, 30)
    prepared(transactions, B, 60)

    assert store.parts == {}


def test_memory_that_nobody_holds_does_not_stop_the_stream() -> None:
    transactions = PreparedTransactions(Parts(), memory_bytes=10)
    transactions.finish(prepared(transactions, A, 5))
    transactions._memory = 1_000

    prepared(transactions, B, 20)


def test_a_found_transaction_is_committed_like_any_other() -> None:
    transactions = PreparedTransactions(sought=[A, B])
    transactions.take_sought(prepared_before(A))

    assert transactions.sought() == {B}
    assert content(transactions, transactions.of(A, "g:9", "here")) == 10
    assert [each.xid for each in transactions.taken([A, B])] == [A]
    assert transactions.taken([]) == []
    assert transactions.taken([A]) == []  # the call before has made it forget the name


def test_a_transaction_that_the_tail_finds_is_no_longer_sought() -> None:
    transactions = PreparedTransactions(sought=[A])
    transactions.adopt(prepared_before(A))

    assert transactions.sought() == set()
    assert [each.xid for each in transactions.taken([A])] == [A]


@pytest.mark.parametrize("how", ["prepared anew", "rolled back", "begun anew", "committed"])
def test_a_late_find_does_not_replace_a_transaction_of_the_stream(how: str) -> None:
    store = Parts()
    transactions = PreparedTransactions(store, sought=[A])
    if how == "prepared anew":
        prepared(transactions, A, 20, "g:5")
    elif how == "begun anew":
        transactions.begin(A, "g:5", "binlog.000002")
    elif how == "rolled back":
        transactions.roll_back(A)
    else:
        transactions.adopt(prepared_before(A))
        transactions.finish(transactions.of(A, "g:5", "here"))
    late = prepared_before(A)
    PreparedTransactions(store).keep([late])
    transactions.take_sought(late)

    assert store.parts == {}
    assert transactions.sought() == set()
    if how == "prepared anew":
        assert content(transactions, transactions.of(A, "g:9", "here")) == 20


def test_prepared_transactions_of_the_offset_are_not_sought() -> None:
    assert PreparedTransactions(known=[PreparedXa(A, "g:1")], sought=[A, B]).sought() == {B}


def test_an_unlogged_end_removes_only_the_transaction_of_that_gtid() -> None:
    store = Parts()
    transactions = PreparedTransactions(store, memory_bytes=50)
    prepared(transactions, A, 30, "g:1")
    transactions.forget(PreparedXa(A, "g:1"))
    prepared(transactions, A, 30, "g:2")
    transactions.forget(PreparedXa(A, "g:1"))

    assert transactions.of(A, "g:9", "here").gtid == "g:2"
    prepared(transactions, B, 20)
    assert store.parts == {}
