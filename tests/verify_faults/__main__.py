"""The program that seeds faults into copies of topics, and counts those that `incsnap verify` finds and names.

    python -m tests.verify_faults                              200 faults in all forms
    python -m tests.verify_faults --form avro --faults 30 --seed 7

The exit code is 1 if verify missed a fault, gave it a wrong name, or named a key without a fault.
"""

from __future__ import annotations

import logging
import os
import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory

import click
from pyspark.sql import SparkSession

from incsnap.config.load import from_properties
from incsnap.spark.launch.startup import launched
from incsnap.spark.worker_python import leave_pandas_out
from lab.fetched_registry import registry
from lab.servers import Servers, servers
from tests.support.properties import QUIET
from tests.verify_faults.course import FormResult, run_form
from tests.verify_faults.forms import FORMS, Form
from tests.verify_faults.seeding import KINDS

_SPARK = {"spark.shuffle.compress": "true", "spark.driver.memory": "1g"}
_NAMES = click.Choice([each.short for each in FORMS])


@click.command()
@click.option("--seed", default=1, show_default=True, help="Seed of all chance. The same seed seeds the same faults.")
@click.option("--faults", default=200, show_default=True, help="Faults of all forms together.")
@click.option("--form", "names", multiple=True, type=_NAMES, help="Form of topics; all without it. May be repeated.")
@click.option("--rows", default=160, show_default=True, help="Rows of each table in the snapshot.")
def main(seed: int, faults: int, names: tuple[str, ...], rows: int) -> None:
    """Seed faults into copies of topics, and count those that `incsnap verify` finds and names."""
    forms = [each for each in FORMS if not names or each.short in names]
    leave_pandas_out()
    logging.basicConfig(level=logging.WARNING)
    with ExitStack() as stack:
        folder = Path(stack.enter_context(TemporaryDirectory(prefix="verify-faults-")))
        url = stack.enter_context(registry()) if any(each.avro for each in forms) else ""
        started = stack.enter_context(servers())
        settings = from_properties({**QUIET, **started.mysql.properties()}).settings
        launch = stack.enter_context(launched(settings.model_copy(update={"spark": _SPARK})))
        spark = launch.session()
        is_wrong = _seeded(spark, started, url, forms, seed, faults, rows, folder)
        spark.stop()
    sys.stdout.flush()
    # Spark's threads would outlive the program.
    os._exit(int(is_wrong))


def _seeded(
    spark: SparkSession,
    started: Servers,
    registry_url: str,
    forms: Sequence[Form],
    seed: int,
    faults: int,
    rows: int,
    folder: Path,
) -> bool:
    """Seed faults into topics of all forms, and return True if an answer was wrong."""
    results: dict[str, FormResult] = {}
    began = time.monotonic()
    for number, form in enumerate(forms):
        share = faults * (number + 1) // len(forms) - faults * number // len(forms)
        result = run_form(spark, started, registry_url, form, seed, share, rows, folder)
        results[form.name] = result
        seeded = sum(each.seeded for each in result.tallies.values())
        _say(f"{form.name}: {seeded} of {share} faults, {result.rows:,} rows in {result.seconds:.1f} s,"
             f" {len(result.wrong)} wrong answers")  # fmt: skip
        for each in result.wrong[:20]:
            _say(f"    {each}")
    seeded = sum(each.seeded for result in results.values() for each in result.tallies.values())
    _say(f"\nseed {seed}, {seeded} of {faults} faults seeded, {time.monotonic() - began:.0f} s\n\n{table(results)}")
    return any(each.wrong for each in results.values())


def table(results: dict[str, FormResult]) -> str:
    """Return the counts of each kind in each form as a table: seeded, found, rightly named."""
    lines = [["kind", *results]]
    for kind in KINDS:
        cells = [results[name].tallies[kind] for name in results]
        lines.append([kind, *(_cell(each.seeded, each.detected, each.named, each.shown) for each in cells)])
    return "\n".join(f"| {' | '.join(cells)} |" for cells in [lines[0], ["---"] * len(lines[0]), *lines[1:]])


def _cell(seeded: int, detected: int, named: int, shown: bool) -> str:
    if not seeded:
        return "-"
    return f"{seeded} / {detected} / {named}" if shown else f"{seeded}, not shown"


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
