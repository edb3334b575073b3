"""What ``spark-submit`` was told, for a program that it has started."""

from __future__ import annotations

import os
from collections.abc import Mapping

from pyspark import SparkConf, SparkContext

from incsnap.spark.gateway import GIVEN

#: What ``spark-submit`` has acted upon before the program began: where the driver runs, and who gives it executors.
_DECIDED = ("spark.master", "spark.submit.deployMode")


def submitted() -> dict[str, str]:
    """The properties of its command line and of ``spark-defaults.conf``; none where it has not started us."""
    if GIVEN not in os.environ:
        return {}
    SparkContext._ensure_initialized()
    return dict(SparkConf(_jvm=SparkContext._jvm).getAll())


def decided(submitted_properties: Mapping[str, str]) -> dict[str, str]:
    """Which of ``submitted_properties`` no file of settings can change any more."""
    return {name: submitted_properties[name] for name in _DECIDED if name in submitted_properties}
