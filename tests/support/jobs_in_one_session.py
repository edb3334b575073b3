"""``python -m tests.support.jobs_in_one_session FILE...``: one session, as the first file wants it, with a job of each.

Ends with SIGTERM, which stops the jobs at a batch's end; with an error as soon as one of them ends by itself.
"""

from __future__ import annotations

import signal
import sys
import threading

import incsnap
from incsnap.spark.session import session


def main(files: list[str]) -> None:
    end = threading.Event()
    signal.signal(signal.SIGTERM, lambda number, frame: end.set())
    all_settings = [incsnap.load(file) for file in files]
    spark = session(all_settings[0])
    jobs = [(settings, incsnap.start(spark, settings)) for settings in all_settings]
    while not end.wait(0.2):
        for settings, query in jobs:
            if not query.isActive:
                raise SystemExit(f"{settings.topic_prefix} ended: {query.exception()}")
    for settings, query in jobs:
        incsnap.stop(query, settings)
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1:])
