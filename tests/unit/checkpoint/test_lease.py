"""Tests of the lease on a real S3 server: only one job may use a checkpoint in a bucket."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import asdict, replace
from itertools import pairwise

import pytest

from incsnap.checkpoint import lease as lease_module
from incsnap.checkpoint.lease import Holder, Lease, LeaseLost, LeaseTimes
from incsnap.checkpoint.lock import checkpoint_lock
from incsnap.checkpoint.objects import ObjectFolder
from incsnap.errors import ConfigError
from lab.object_store import ObjectStore
from tests.support.waiting import wait_until

#: A lease that runs out while a test waits for it.
QUICK = LeaseTimes(lease=1.5, renewal=0.1)
#: A lease that does not run out on a busy machine.
LASTING = LeaseTimes(lease=600.0, renewal=0.1)


@pytest.fixture
def folder(bucket_folder: str) -> ObjectFolder:
    return ObjectFolder(f"{bucket_folder}/incsnap")


@pytest.fixture
def taken_lease(folder: ObjectFolder) -> Iterator[Lease]:
    lease = Lease(folder, LASTING)
    lease.acquire()
    yield lease
    lease.release()


def written(folder: ObjectFolder) -> Holder:
    tagged = folder.read_tagged("lease.json")
    assert tagged is not None
    return Holder(**json.loads(tagged[0]))


def test_a_second_job_is_refused_and_told_who_has_the_checkpoint(taken_lease: Lease, folder: ObjectFolder) -> None:
    with pytest.raises(ConfigError, match=f"the process {os.getpid()} on {socket.gethostname()}"):
        Lease(folder, LASTING).acquire()
    taken_lease.refuse_if_lost()


def test_a_job_that_ended_in_order_is_followed_at_once(folder: ObjectFolder, bucket_folder: str) -> None:
    for _ in range(2):
        with checkpoint_lock(bucket_folder, f"{bucket_folder}/incsnap") as lock:
            lock.refuse_if_lost()
    assert written(folder).released


def test_a_dead_process_of_this_machine_is_followed_at_once(folder: ObjectFolder) -> None:
    program = (
        "import os; from incsnap.checkpoint.lease import _began as b, _machine as m; print(p := os.getpid(), m(), b(p))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    process = done.stdout.split()
    dead = Holder("other", socket.gethostname(), int(process[0]), f"{process[1]}/{process[2]}")
    assert folder.create("lease.json", json.dumps(asdict(dead)).encode())
    lease = Lease(folder, LeaseTimes(lease=3_600.0))
    lease.acquire()

    assert written(folder).pid == os.getpid()
    lease.release()


@pytest.mark.parametrize("process", ["", "another-boot/pid:[1]/77"])
def test_the_lease_of_another_machine_runs_out_when_it_is_not_renewed(folder: ObjectFolder, process: str) -> None:
    other = Holder("other", "elsewhere", 1, process)
    assert folder.create("lease.json", json.dumps(asdict(other)).encode())
    lease = Lease(folder, QUICK)
    lease.acquire()

    assert written(folder).host == socket.gethostname()
    lease.release()


def test_of_many_who_want_it_at_once_one_gets_it(folder: ObjectFolder) -> None:
    leases = [Lease(folder, LASTING) for _ in range(6)]
    got: list[Lease] = []
    refused: list[ConfigError] = []

    def ask(lease: Lease) -> None:
        try:
            lease.acquire()
            got.append(lease)
        except ConfigError as error:
            refused.append(error)

    threads = [threading.Thread(target=ask, args=(lease,)) for lease in leases]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert (len(got), len(refused)) == (1, 5)
    got[0].refuse_if_lost()
    got[0].release()


def test_a_holder_that_was_followed_learns_it_with_the_name_of_who_did(
    taken_lease: Lease, folder: ObjectFolder
) -> None:
    def take() -> bool:
        """Take the lease as another process would do after this one was frozen between two renewals."""
        tagged = folder.read_tagged("lease.json")
        assert tagged is not None
        other = replace(written(folder), token="other", host="elsewhere", pid=7)
        return folder.replace("lease.json", json.dumps(asdict(other)).encode(), tagged[1]) is not None

    wait_until(take)

    def lost() -> bool:
        try:
            taken_lease.refuse_if_lost()
        except LeaseLost as error:
            return "taken by the process 7 on elsewhere" in error.message
        return False

    wait_until(lost)
    taken_lease.release()
    assert written(folder).host == "elsewhere", "what is lost must not be released"


def test_a_holder_that_cannot_renew_stops_before_anybody_may_follow(
    folder: ObjectFolder, object_store: ObjectStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = [1_000.0]
    monkeypatch.setattr(lease_module, "_now", lambda: clock[0])
    lease = Lease(folder)
    lease.acquire()
    times = LeaseTimes()
    assert times.renewal * 2 < times.trusted < times.lease
    clock[0] += times.trusted - 0.1
    lease.refuse_if_lost()
    clock[0] += 0.2

    with pytest.raises(LeaseLost, match="could not be renewed for 20 s"):
        lease.refuse_if_lost()
    lease.release()


def test_an_answer_that_is_lost_loses_no_lease(folder: ObjectFolder, object_store: ObjectStore) -> None:
    lost_answer = {"method": "PUT", "key": "lease[.]json", "status": 500, "after": True}
    object_store.fail(lost_answer)
    lease = Lease(folder, LASTING)
    lease.acquire()  # made, but not told so: the second try finds it there
    object_store.fail(lost_answer)
    before = written(folder).renewals
    wait_until(lambda: written(folder).renewals > before + 2)

    lease.refuse_if_lost()
    lease.release()
    assert written(folder).released


def test_a_renewal_is_one_request(taken_lease: Lease, object_store: ObjectStore, folder: ObjectFolder) -> None:
    begun = taken_lease._own_holder.renewals
    object_store.requests()
    wait_until(lambda: taken_lease._own_holder.renewals >= begun + 5)
    made = taken_lease._own_holder.renewals - begun
    asked = [kind for kind, key in object_store.requests() if key.endswith("lease.json")]

    assert set(asked) == {"PUT"}
    assert made <= len(asked) + 1
    assert len(asked) <= made + 1


def test_times_leave_room_for_renewals_that_fail() -> None:
    times = LeaseTimes()
    steps = (0.0, times.renewal, 3 * times.renewal, times.trusted, times.lease)
    assert all(first < second for first, second in pairwise(steps))
