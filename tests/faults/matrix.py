"""Rows of faults, each under its own trial, and the one table of what the ledgers found."""

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

from tests.faults import cluster, kills, machines, outages, rivals
from tests.faults.ground import Ground
from tests.faults.kills import Fault
from tests.faults.trial import Trial, trial


@dataclass(frozen=True, slots=True)
class Row:
    """``share``: of the faults asked for; ``needs``: why it cannot be done here, or "" where it can."""

    fault: Fault
    share: float = 1.0
    replica: bool = False
    clock: bool = False
    small_disk: bool = False
    cluster: bool = False
    needs: Callable[[], str] = lambda: ""
    settings: Mapping[str, str] = field(default_factory=dict)

    @property
    def what(self) -> str:
        """Its first line of words."""
        return (self.fault.__doc__ or "").strip().partition("\n")[0]


def rows(longest_hold: float) -> dict[str, Row]:
    """All of them. ``longest_hold``: seconds for which something is stopped."""
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
        "clock": Row(machines.clock_jumps, clock=True),
        **{
            name: Row(fault, 0.3, cluster=True, needs=cluster.may_listen, settings=settings)
            for name, (fault, settings) in cluster.ROWS.items()
        },
    }


@dataclass(slots=True)
class Outcome:
    """``skipped``: why nothing was done. ``wrong``: all that the ledger found, or that stuck."""

    row: str
    faults: int = 0
    done: str = ""
    account: str = ""
    seconds: float = 0.0
    skipped: str = ""
    wrong: list[str] = field(default_factory=list)


def shares(names: Sequence[str], known: Mapping[str, Row], faults: int) -> dict[str, int]:
    """How many faults each row is given: at least two, for before and after, and ``faults`` together or more."""
    total = sum(known[name].share for name in names)
    return {name: max(2, -int(-faults * known[name].share // total)) for name in names}


def run(
    ground: Ground,
    plan: Mapping[str, int],
    known: Mapping[str, Row],
    seed: int,
    folder: Path,
    table_rows: int,
    tell: Callable[[str], None],
) -> Iterator[Outcome]:
    """``plan``: how many faults of each row."""
    for name, faults in plan.items():
        began = time.monotonic()
        outcome = _run(ground, name, known[name], faults, Random(f"{seed} {name}"), folder / name, table_rows, tell)
        outcome.seconds = time.monotonic() - began
        yield outcome


def _run(
    ground: Ground,
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
        ground.replicate()
    running: Trial | None = None
    try:
        spark = ground.spark().settings if row.cluster else {}
        with (
            _folder(folder, row),
            trial(ground, name, random, folder, table_rows, {**spark, **row.settings}, clock=row.clock) as running,
        ):
            for number in range(faults):
                running.keep_reading()
                row.fault(running, number)
                outcome.faults += 1
                # Every other time the next fault may meet what follows from this one.
                if random.random() < 0.5:
                    running.goes_on()
                else:
                    running.writers.keep()
                    running.alive()
                tell(f"{name}: {outcome.faults} of {faults}")
            outcome.wrong = running.finish()
            outcome.account = running.account()
    except Exception as error:  # noqa: BLE001 - told in the table; the next row is tried all the same
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
    """Markdown."""
    lines = ["| row | faults | what was done | what the ledger had | found | s |", "|---|---|---|---|---|---|"]
    for each in outcomes:
        verdict = f"skipped: {each.skipped}" if each.skipped else "**wrong**" if each.wrong else "nothing"
        lines.append(f"| {each.row} | {each.faults} | {each.done} | {each.account} | {verdict} | {each.seconds:.0f} |")
    return "\n".join(lines)
