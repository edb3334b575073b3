"""``python -m tests.support.jobs_in_one_session FILE...``: one session, as the first file wants it, with a job of each.

Ends with SIGTERM, which stops the jobs at a batch's end. A job whose query ends by itself is started again, as whoever
has several in a session must do it; with an error as soon as one has ended more often than failures do that pass.
"""

from __future__ import annotations

import signal
import sys
import threading

import incsnap
from incsnap.spark.session import session

_FAILURES = 5


def main(files: list[str]) -> None:
    end = threading.Event()
    signal.signal(signal.SIGTERM, lambda number, frame: end.set())
    all_settings = [incsnap.load(file) for file in files]
    spark = session(all_settings[0])
    queries = [incsnap.start(spark, settings) for settings in all_settings]
    failures = 0
    while not end.wait(0.2):
        for index, settings in enumerate(all_settings):
            if queries[index].isActive:
                continue
            failures += 1
            problem = f"{settings.topic_prefix} ended: {queries[index].exception()}"
            if failures > _FAILURES:
                raise SystemExit(problem)
            sys.stderr.write(problem + "\n")
            queries[index] = incsnap.start(spark, settings)
    for query, settings in zip(queries, all_settings, strict=True):
        incsnap.stop(query, settings)
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1:])
