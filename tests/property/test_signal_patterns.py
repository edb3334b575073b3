"""Tests of patterns in signals, in a process with a memory limit: no pattern takes much memory or time."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from typing import Any

import pytest

from tests.support.profile import seed

#: A child program, because a memory limit applies to a process. It reads signals of one pattern each, and prints the
#: outcome and the seconds of processor time of each. Clock time would include other processes.
_CHILD = """
import json, resource, sys, time
from signals.parse import parse
from signals.records import Signal, SignalRecord
from signals.resolve import resolve

limit = int(sys.argv[1]) << 20
resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
names = [f"db.{'a' * size}{letter}" for size in (1, 60) for letter in "ab"]
for line in sys.stdin:
    began = time.process_time()
    signal = parse(SignalRecord("s", "execute-snapshot", {"data-collections": [json.loads(line)]}))
    outcome = "refused"
    if isinstance(signal, Signal):
        try:
            outcome = str(len(resolve(signal.data_collections, names).tables))
        except TimeoutError:
            outcome = "late"
    print(json.dumps([outcome, time.process_time() - began]), flush=True)
"""
#: MiB of address space. A process that has only imported the package has 60.
_MEBIBYTES = 320


def _outcomes(patterns: list[str]) -> list[Any]:
    child = subprocess.run(
        [sys.executable, "-c", _CHILD, str(_MEBIBYTES)],
        input="".join(json.dumps(pattern) + "\n" for pattern in patterns),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    outcomes = [json.loads(line) for line in child.stdout.splitlines()]
    assert len(outcomes) == len(patterns), f"{patterns[len(outcomes)]!r} ended the process: {child.stderr[-500:]}"
    return outcomes


_BOMBS = [
    "(?:(?:[ab]c){1000}){1000}",
    "(?:(?:a?b?){1000}){1000}",
    "(?:(?:(?:ab|cd){100}){100}){100}",
    "(?:" * 5 + "[ab]{1000}" + "){1000}" * 5,
    "(?:" * 20 + "a?" + "){2,9}" * 20,
    "(?:(a|b){30}){30}" * 12,
    "(?=db)(?:(?:[ab]c){1000}){1000}",
    "(?=db)" + "(?:" * 12 + "(?:a|ab)" + "){0,9}" * 12,
    "[a-z]{65535}",
    "(?!x)[a-z]{65535}",
    "(" * 400 + "a" + ")" * 400,
    "(?=.)" + "(" * 120 + ")" * 120,
    "(?:\\w|.){999}" * 50,
    "(?=x|)(?:" + "|".join("abcdefgh" * 3) + "){300}",
]


@pytest.mark.parametrize("pattern", _BOMBS)
def test_an_expression_made_to_fill_the_memory_is_refused_or_harmless(pattern: str) -> None:
    ((_, seconds),) = _outcomes([pattern])
    assert seconds < 2


@pytest.mark.parametrize("pattern", [r"db\.(?=a)(a|aa|a*)*c", r"db\.(a++|a)*+\1*(?<=c)d", r"(?=.)(.*.*.*.*)*(.*)*\1x"])
def test_an_expression_made_to_take_for_ever_is_given_up_in_time(pattern: str) -> None:
    ((outcome, seconds),) = _outcomes([pattern])
    assert outcome in ("0", "late", "refused")
    assert seconds < 2


def _random_pattern(rng: random.Random, depth: int = 0) -> str:
    atoms = ["a", "b", ".", r"\w", "[ab]", "[^x-z]", r"\.", "db", "", r"\b", r"\u0061", "ä"]
    parts = []
    for _ in range(rng.randint(1, 3)):
        if depth < 8 and rng.random() < 0.6:
            opening = rng.choice(["(?:", "(?:", "(", "(?=", "(?!", "(?<!", "(?>", "(?i:"])
            part = f"{opening}{_random_pattern(rng, depth + 1)})"
        else:
            part = rng.choice(atoms) + rng.choice(["", "|"])
        count = rng.choice([1, 2, 9, 30, 300, 999, 60_000])
        part += rng.choice(["", "", "*", "+", "?", "*?", "++", f"{{{count}}}", f"{{0,{count}}}", f"{{{count},}}"])
        parts.append(part)
    return "".join(parts)


def test_no_expression_takes_much_memory_or_time() -> None:
    chosen = seed(1)
    rng = random.Random(chosen)
    patterns = [_random_pattern(rng) for _ in range(2_000)]
    outcomes = _outcomes(patterns)
    slowest, pattern = max((seconds, pattern) for (_, seconds), pattern in zip(outcomes, patterns, strict=True))
    taken = sum(outcome != "refused" for outcome, _ in outcomes)
    assert slowest < 3, f"{pattern!r} took {slowest:.1f} s (seed {chosen})"
    assert taken > 100, f"only {taken} of {len(outcomes)} expressions were tried (seed {chosen})"
