"""A Spark that is too old for jobs refuses them before anything else is done."""

from __future__ import annotations

import pytest

from incsnap.config.servers import KafkaSettings, MySqlSettings
from incsnap.config.settings import Settings
from incsnap.errors import ConfigError
from incsnap.spark import spark_release
from incsnap.spark.launch.preparing import prepare_start
from incsnap.spark.launch.startup import launched

SETTINGS = Settings(
    mysql=MySqlSettings(hostname="", user=""),
    kafka=KafkaSettings(bootstrap_servers=""),
    topic_prefix="",
    checkpoint_location="/nowhere",
)


def test_a_job_is_refused_without_admission_control(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spark_release, "HAS_ADMISSION_CONTROL", False)
    with pytest.raises(ConfigError, match=r"needs Spark 4\.2 or 4\.3, and this is Spark \d"), launched(SETTINGS):
        pass
    with pytest.raises(ConfigError, match="needs Spark"):
        prepare_start()
