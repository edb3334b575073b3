"""The costs that the model adds up, as they were measured and kept in a file."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

FILE = Path(__file__).parent / "costs.json"


@dataclass(frozen=True, slots=True)
class Costs:
    """``seconds`` and bytes by the name of the step (``steps.py``); ``about``: when and where they were measured."""

    figures: Mapping[str, float]
    about: Mapping[str, str] = field(default_factory=dict)

    def __getitem__(self, name: str) -> float:
        return self.figures[name]

    def at(self, step: str, number: float) -> float:
        """Gives what a step that was measured at some numbers (``step.1``, ``step.100``) costs at another: on the
        straight line between the two that enclose ``number``, or through the last two."""
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
        text = {"about": dict(self.about), "costs": {name: float(f"{cost:.4g}") for name, cost in self.figures.items()}}
        path.write_text(json.dumps(text, indent=2) + "\n")


def read(path: Path = FILE) -> Costs:
    document = json.loads(path.read_text())
    return Costs(document["costs"], document["about"])
