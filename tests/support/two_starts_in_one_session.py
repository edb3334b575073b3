"""The program `python -m tests.support.two_starts_in_one_session FIRST SECOND FOLDER`: two jobs in one session.

It starts the second job without `replace_job`, and then with it. Each step becomes a line of JSON in FOLDER/steps. The
program goes on when the files "replace" and "end" appear in FOLDER.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

from pyspark.errors import StreamingQueryException

import incsnap
from incsnap.errors import ConfigError
from tests.support.spark_session import session

_SECONDS = 120


def main(first_file: str, second_file: str, folder: Path) -> None:
    def say(step: str, text: object = "") -> None:
        with (folder / "steps").open("a") as file:
            file.write(json.dumps([step, str(text)]) + "\n")

    def wait_for(name: str) -> None:
        while not (folder / name).exists():
            time.sleep(0.1)

    first_settings, second_settings = map(incsnap.Settings.from_file, (first_file, second_file))
    spark = session(first_settings)
    first = incsnap.start(spark, first_settings)
    try:
        incsnap.start(spark, second_settings)
    except ConfigError as error:
        say("refused", error)
    wait_for("replace")
    second = incsnap.start(spark, second_settings, replace_job=True)
    try:
        first.query.awaitTermination(_SECONDS)
    except StreamingQueryException as error:
        say("first ended", error)
    wait_for("end")
    second.stop()
    say("second stopped", second.query.exception() or "")
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], Path(sys.argv[3]))
