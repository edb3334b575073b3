"""The door to Spark: which of the two ways a start takes."""

from __future__ import annotations

import errno
import signal

import pytest

from incsnap.config.load import from_properties
from incsnap.errors import ConfigError
from incsnap.spark.launch import startup
from incsnap.spark.launch.startup import SparkDidNotStart, launched
from incsnap.spark.launch.zygote import Zygote
from incsnap.spark.session import GIVEN_JVM, without_secrets
from tests.support.properties import NEEDED


@pytest.fixture(autouse=True)
def _nothing_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    def start(*_: object) -> None:
        raise AssertionError("a process starts ahead")

    monkeypatch.setattr(startup, "Gateway", start)
    monkeypatch.setattr(startup, "Zygote", start)
    monkeypatch.setattr(startup, "submitted", dict)
    for name in ("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON", "SPARK_LOCAL_IP", "MALLOC_ARENA_MAX"):
        monkeypatch.setenv(name, "")
    monkeypatch.delenv(GIVEN_JVM, raising=False)


def test_a_plain_start_has_no_processes_of_its_own() -> None:
    with launched(from_properties({**NEEDED, "incsnap.spark.launch.mode": "plain"}).settings) as launch:
        launch.before_query()


def test_a_program_that_was_given_a_jvm_starts_plainly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(GIVEN_JVM, "1")

    with launched(from_properties(NEEDED).settings) as launch:
        launch.before_query()


def test_processes_start_ahead_by_default() -> None:
    with pytest.raises(AssertionError, match="starts ahead"), launched(from_properties(NEEDED).settings):
        pass


def test_another_mode_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"incsnap\.spark\.launch\.mode: 'fast'"):
        from_properties({**NEEDED, "incsnap.spark.launch.mode": "fast"})


def test_a_session_that_spark_refuses_is_an_error_with_its_master(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: object) -> None:
        raise ConnectionError("no route")

    monkeypatch.setattr(startup, "session_with", refuse)
    settings = from_properties({**NEEDED, "incsnap.spark.launch.mode": "plain"}).settings

    with launched(settings) as launch, pytest.raises(SparkDidNotStart, match=r"no session on local\[4,4\]: no route"):
        launch.session()


def test_sparks_handler_of_ctrl_c_does_not_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    handler = signal.getsignal(signal.SIGINT)
    monkeypatch.setattr(startup, "session_with", lambda _: signal.signal(signal.SIGINT, lambda *_: None))

    with launched(from_properties({**NEEDED, "incsnap.spark.launch.mode": "plain"}).settings) as launch:
        launch.session()

    assert signal.getsignal(signal.SIGINT) is handler


@pytest.mark.parametrize(
    "error",
    [
        OSError(errno.ENOSPC, "No space left on device", "/tmp/incsnap-python-x"),
        FileNotFoundError(errno.ENOENT, "No usable temporary directory found in ['/tmp']"),
    ],
)
def test_a_full_temporary_folder_is_one_sentence(error: OSError, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(**options: object) -> str:
        raise error

    monkeypatch.setattr(startup, "Zygote", Zygote)
    monkeypatch.setattr("incsnap.spark.owned_folders.tempfile.mkdtemp", full)

    with (
        pytest.raises(SparkDidNotStart, match="no space left in the temporary folder"),
        launched(from_properties(NEEDED).settings),
    ):
        pass


def test_secrets_stay_off_a_command_line() -> None:
    secrets = {
        "spark.hadoop.fs.s3a.secret.key": "2",
        "spark.hadoop.fs.azure.account.key.shop.dfs.core.windows.net": "3",
        "spark.hadoop.fs.azure.sas.orders.shop.blob.core.windows.net": "4",
    }

    assert without_secrets({"spark.a": "1", **secrets}) == {"spark.a": "1"}
