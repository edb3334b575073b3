"""The result of runs of a tool: which of the cases that were asked for the runs truly hit, and what is wrong."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field

#: Cases that each run asks for.
SNAPSHOT = "a snapshot under way at the swap"
WINDOW = "a window in flight at the swap"
REREAD = "old rows read again"
#: The beginning of the case of a job that is killed.
KILLED = "the job killed"
#: Verdicts, from the best to the worst, and the exit code of each.
RIGHT, NOT_HIT, WRONG = "right", "not hit", "wrong"
EXIT_CODES = {RIGHT: 0, NOT_HIT: 3, WRONG: 1}


@dataclass(slots=True)
class Result:
    """The result of one run."""

    name: str  #: tool and alteration
    seconds: float = 0.0  #: from the tool's start to the swap
    written: int = 0  #: changed rows until the tool ended
    rate: float = 0.0  #: changed rows a second until the tool ended
    cases: dict[str, bool] = field(default_factory=dict)  #: cases that were asked for, and whether the run hit them
    side: str = ""  #: how far the job was when it was killed; "" if it was not killed
    wrong: list[str] = field(default_factory=list)  #: what is not as it should be

    @property
    def verdict(self) -> str:
        """WRONG if something is wrong, else NOT_HIT if the run has missed a case, else RIGHT."""
        return WRONG if self.wrong else NOT_HIT if not all(self.cases.values()) else RIGHT

    def lines(self) -> list[str]:
        """Return the result in words."""
        side = f" ({self.side})" if self.side else ""
        return [
            f"{self.name}: {self.verdict}; {self.seconds:.0f} s, {self.written} rows changed, {self.rate:.0f}/s",
            *(
                f"  {'hit' if is_hit else 'not hit'}: {case}{side if case.startswith(KILLED) else ''}"
                for case, is_hit in self.cases.items()
            ),
            *(f"  WRONG: {fault}" for fault in self.wrong),
        ]


def verdict_of(results: Sequence[Result]) -> str:
    """Return the worst verdict. No result at all is WRONG."""
    return max((result.verdict for result in results), key=list(EXIT_CODES).index, default=WRONG)


def sums(results: Sequence[Result]) -> dict[str, list[int]]:
    """Return for each case how many runs have hit it, and how many were asked to."""
    cases = dict.fromkeys(case for result in results for case in result.cases)
    asked = {case: [result.cases[case] for result in results if case in result.cases] for case in cases}
    return {case: [sum(hits), len(hits)] for case, hits in asked.items()}


def json_line(results: Sequence[Result], **asked: object) -> str:
    """Return a line of JSON: `asked`, and what the runs have given."""
    return json.dumps(
        {
            **asked,
            "runs": len(results),
            "hits": sums(results),
            "sides": [result.side for result in results if result.side],
            "seconds": [round(result.seconds, 1) for result in results],
            "written_per_second": [round(result.rate) for result in results],
            "wrong": sum(bool(result.wrong) for result in results),
            "verdict": verdict_of(results),
        }
    )
