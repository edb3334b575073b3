"""The matrix of faults: it runs each row on its own job, and makes a table of the ledgers' results."""

from __future__ import annotations

import shutil
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from tests.faults import cluster, kills, machines, outages, rivals, two_starts
from tests.faults.fault_servers import FaultServers
from tests.faults.kills import Fault
from tests.faults.mixes import Storage
from tests.faults.trial import Trial, trial


@dataclass(frozen=True, slots=True)
class Row:
    """A kind of fault, and what it needs."""

    fault: Fault  #: causes one fault; its docstring describes the row
    share: float = 1.0  #: weight of the row when faults are distributed
    replica: bool = False  #: needs a replica
    clock: bool = False  #: moves the job's clock
    small_disk: bool = False  #: has the checkpoint on a small disk
    cluster: bool = False  #: runs on a Spark cluster
    bucket: bool = False  #: has the checkpoint in a bucket
    needs: Callable[[], str] = lambda: ""  #: returns why the row cannot run here, or ""
    settings: Mapping[str, str] = field(default_factory=dict)  #: further settings of the job

    @property
    def what(self) -> str:
        """Return the first line of the fault's docstring."""
        return (self.fault.__doc__ or "").strip().partition("\n")[0]


def rows(longest_hold: float) -> dict[str, Row]:
    """Return all rows by their names. `longest_hold` is how many seconds a process may be suspended."""
    return {
        **{name: Row(fault) for name, fault in kills.ROWS.items()},
        "anytime": Row(kills.at_any_moment, 2.0),
        "mysql-killed": Row(outages.mysql_killed),
        "mysql-sessions": Row(outages.mysql_sessions, 2.0),
        "failover": Row(outages.failover, replica=True),
        "kafka-killed": Row(outages.kafka_killed),
        "kafka-slow": Row(outages.kafka_slow(longest_hold + 4)),
        "small-messages": Row(outages.small_messages, 0.5),
        "disk-full": Row(machines.disk_full, small_disk=True, needs=machines.may_mount),
        "held": Row(machines.frozen(longest_hold), 0.6),
        "same-checkpoint": Row(rivals.same_checkpoint, 0.3),
        "older-copy": Row(rivals.older_copy, 0.3),
        "same-prefix": Row(rivals.same_prefix, 0.3),
        **{
            name: Row(fault, 1.9, bucket=place is Storage.BUCKET, needs=two_starts.may_have(place))
            for name, (fault, place) in two_starts.ROWS.items()
        },
        "clock": Row(machines.clock_jumps, clock=True),
        **{
            name: Row(fault, 0.3, cluster=True, needs=cluster.may_listen, settings=settings)
            for name, (fault, settings) in cluster.ROWS.items()
        },
    }


@dataclass(slots=True)
class Outcome:
    """The result of a row."""

    row: str
    faults: int = 0  #: faults that were caused
    done: str = ""  #: what was done, with numbers
    account: str = ""  #: figures of the ledger
    seconds: float = 0.0
    skipped: str = ""  #: why the row did not run; "": it ran
    #: all faults of the product: the ledger's findings, or that the job did not go on
    wrong: list[str] = field(default_factory=list)


def shares(names: Sequence[str], known: Mapping[str, Row], faults: int) -> dict[str, int]:
    """Return the number of faults of each row: at least two, for before and after, and at least `faults` together."""
    total = sum(known[name].share for name in names)
    return {name: max(2, -int(-faults * known[name].share // total)) for name in names}


def run(
    servers: FaultServers,
    plan: Mapping[str, int],
    known: Mapping[str, Row],
    seed: int,
    folder: Path,
    table_rows: int,
    tell: Callable[[str], None],
) -> Iterator[Outcome]:
    """Run the rows and yield their results. `plan` has the number of faults of each row."""
    for name, faults in plan.items():
        began = time.monotonic()
        outcome = _run(servers, name, known[name], faults, Random(f"{seed} {name}"), folder / name, table_rows, tell)
        outcome.seconds = time.monotonic() - began
        yield outcome


def _run(
    servers: FaultServers,
    name: str,
    row: Row,
    faults: int,
    random: Random,
    folder: Path,
    table_rows: int,
    tell: Callable[[str], None],
) -> Outcome:
    outcome = Outcome(name, skipped=row.needs())
    if outcome.skipped:
        return outcome
    if row.replica:
        servers.replicate()
    running: Trial | None = None
    try:
        more = servers.spark().settings if row.cluster else {}
        if row.bucket:
            more = servers.object_store().properties(f"{name}-{random.randrange(1 << 30):08x}/checkpoint")
        with (
            _folder(folder, row),
            trial(servers, name, random, folder, table_rows, {**more, **row.settings}, clock=row.clock) as running,
        ):
            for number in range(faults):
                running.keep_reading()
                row.fault(running, number)
                outcome.faults += 1
                # Every second time do not wait: the next fault then meets the recovery from this one.
                if random.random() < 0.5:
                    running.goes_on()
                else:
                    running.writers.keep()
                    running.alive()
                tell(f"{name}: {outcome.faults} of {faults}")
            outcome.wrong = running.finish()
            outcome.account = running.account()
    except Exception as error:  # noqa: BLE001 - reported in the table; the next row still runs
        traceback.print_exc(file=sys.stderr)
        outcome.wrong.append(f"after {outcome.faults} faults: {type(error).__name__}: {error}")
    if running is not None:
        outcome.done = _counted(running)
    if not outcome.wrong:
        shutil.rmtree(folder, ignore_errors=True)
    return outcome


@contextmanager
def _folder(folder: Path, row: Row) -> Iterator[None]:
    with ExitStack() as stack:
        folder.mkdir(parents=True)
        if row.small_disk:
            checkpoint = folder / "checkpoint"
            machines.mount(checkpoint)
            stack.callback(machines.unmount, checkpoint)
        yield


def _counted(running: Trial) -> str:
    done = ", ".join(f"{what} {count}" for what, count in sorted(running.done.items()))
    met = ", ".join(f"{what} {count}" for what, count in sorted(running.met.items()))
    return f"{done}; met: {met}" if met else done


def table(outcomes: Sequence[Outcome]) -> str:
    """Return the results as a Markdown table."""
    lines = ["| row | faults | what was done | what the ledger had | found | s |", "|---|---|---|---|---|---|"]
    for each in outcomes:
        verdict = f"skipped: {each.skipped}" if each.skipped else "**wrong**" if each.wrong else "nothing"
        lines.append(f"| {each.row} | {each.faults} | {each.done} | {each.account} | {verdict} | {each.seconds:.0f} |")
    return "\n".join(lines)
