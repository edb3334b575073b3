"""The program `python -m tests.support.jobs_in_one_session FILE...`: one Spark session with a job for each file.

The session gets the settings of the first file. SIGTERM stops each job at a batch's end. A job whose query ends is
started again, as a user with several jobs in a session must do. After more than five such ends together the program
fails.
"""

from __future__ import annotations

import signal
import sys
import threading

import incsnap
from tests.support.spark_session import session

_FAILURES = 5


def main(files: list[str]) -> None:
    end = threading.Event()
    signal.signal(signal.SIGTERM, lambda number, frame: end.set())
    all_settings = [incsnap.Settings.from_file(file) for file in files]
    spark = session(all_settings[0])
    jobs = [incsnap.start(spark, settings) for settings in all_settings]
    failures = 0
    while not end.wait(0.2):
        for index, settings in enumerate(all_settings):
            if jobs[index].query.isActive:
                continue
            failures += 1
            problem = f"{settings.topic_prefix} ended: {jobs[index].query.exception()}"
            if failures > _FAILURES:
                raise SystemExit(problem)
            sys.stderr.write(problem + "\n")
            jobs[index] = incsnap.start(spark, settings)
    for job in jobs:
        job.stop()
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1:])
