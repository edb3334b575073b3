"""The costs that the model adds up, and the file that keeps them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

FILE = Path(__file__).parent / "costs.json"


@dataclass(frozen=True, slots=True)
class Costs:
    """The measured costs of all steps."""

    figures: Mapping[str, float]  #: by the step's name (`steps.py`): seconds or bytes
    about: Mapping[str, str] = field(default_factory=dict)  #: when and where they were measured

    def __getitem__(self, name: str) -> float:
        return self.figures[name]

    def at(self, step: str, number: float) -> float:
        """Return the cost of `step` at `number`, for a step that was measured at some numbers (`step.1`, `step.100`).

        The cost lies on the straight line between the two measured numbers that enclose `number`, or through the last
        two. Raise KeyError if the step was measured at fewer than two numbers.
        """
        known = sorted(
            (int(name.rpartition(".")[2]), cost)
            for name, cost in self.figures.items()
            if name.rpartition(".")[0] == step
        )
        for (low, before), (high, behind) in pairwise(known):
            if number <= high or high == known[-1][0]:
                return max(0.0, before + (behind - before) * (number - low) / (high - low))
        raise KeyError(f"{step} was measured at {len(known)} numbers: two are needed")

    def write(self, path: Path = FILE) -> None:
        """Write the costs to a file, with four significant digits."""
        text = {"about": dict(self.about), "costs": {name: float(f"{cost:.4g}") for name, cost in self.figures.items()}}
        path.write_text(json.dumps(text, indent=2) + "\n")


def read(path: Path = FILE) -> Costs:
    """Return the costs in a file."""
    document = json.loads(path.read_text())
    return Costs(document["costs"], document["about"])
