"""The program that lets `incsnap verify` compare tables again and again while a real job runs and writers change them.

    python -m tests.verify_live                      50 runs, up to 2,000 changed rows per second
    python -m tests.verify_live --runs 5 --seed 7 --form avro

Each answer must be equal, or no answer. The exit code is 1 if verify named a difference, which would be a false alarm:
the job sends all changes.
"""

from __future__ import annotations

import logging
import os
import sys
import time
from collections import Counter
from contextlib import ExitStack
from itertools import cycle
from pathlib import Path
from tempfile import TemporaryDirectory

import click

from incsnap.config.load import from_properties
from incsnap.spark.launch.startup import launched
from incsnap.spark.worker_python import leave_pandas_out
from lab.fetched_registry import registry
from lab.servers import servers
from tests.support.properties import QUIET
from tests.verify_faults.forms import FORMS
from tests.verify_live.course import Run, runs_of_job

#: The forms of topics that differ for a live job. The others are of copies.
_FORMS = {each.short: each for each in FORMS if each.short in ("json", "schemas", "avro", "unwrapped")}
_SPARK = {"spark.shuffle.compress": "true", "spark.driver.memory": "1g"}


@click.command()
@click.option("--runs", default=50, show_default=True, help="How often the tables are compared.")
@click.option("--seed", default=1, show_default=True, help="Seed of the writers' choices.")
@click.option("--rate", default=2_000, show_default=True, help="Most changed rows per second.")
@click.option("--rows", default=30_000, show_default=True, help="Rows of each of the two tables.")
@click.option("--wait", default=120.0, show_default=True, help="Seconds in which topics may be late.")
@click.option("--form", "names", multiple=True, type=click.Choice(list(_FORMS)), help="Form of topics; all without it.")
@click.option("--runs-of-job", "of_job", default=5, show_default=True, help="Runs until a new job begins.")
def main(runs: int, seed: int, rate: int, rows: int, wait: float, names: tuple[str, ...], of_job: int) -> None:
    """Compare tables again and again while a real job runs and writers change them."""
    leave_pandas_out()
    logging.basicConfig(level=logging.ERROR)
    began, answers, alarms = time.monotonic(), Counter[str](), 0
    counts = Counter[str]()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(TemporaryDirectory(prefix="verify-live-")))
        started = stack.enter_context(servers())
        settings = from_properties({**QUIET, **started.mysql.properties()}).settings
        spark = stack.enter_context(launched(settings.model_copy(update={"spark": _SPARK}))).session()
        forms = [_FORMS[name] for name in names or _FORMS]
        url = stack.enter_context(registry()) if any(each.avro for each in forms) else ""
        done = 0
        for form in cycle(forms):
            count = min(of_job, runs - done)
            if not count:
                break
            for run in runs_of_job(spark, started, url, form, count, seed + done, rate, rows, wait, folder, counts):
                done += 1
                answers[run.answer] += 1
                alarms += run.answer == "difference"
                _say(done, form.name, run)
        spark.stop()
    sys.stdout.write(f"\nseed {seed}: {done} runs in {time.monotonic() - began:.0f} s, {dict(answers)}\n")
    sys.stdout.write(f"{dict(sorted(counts.items()))}\n")
    sys.stdout.flush()
    # Spark's threads would outlive the program.
    os._exit(int(alarms > 0))


def _say(number: int, form: str, run: Run) -> None:
    sys.stdout.write(
        f"{number}, {form}: {run.answer}, {run.rows:,} rows in {run.seconds:.1f} s beside {run.rate:,.0f} changes/s"
        f"{', ' if run.notes else ''}{'; '.join(run.notes)}\n"
    )
    sys.stdout.flush()


if __name__ == "__main__":
    main()
