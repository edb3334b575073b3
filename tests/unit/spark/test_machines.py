"""The findings about a cluster's machines from the text of Spark's error, and the files that tasks open."""

from __future__ import annotations

import pytest

from incsnap.checkpoint import object_store as process
from incsnap.checkpoint.files import Files
from incsnap.config.load import from_properties
from incsnap.config.object_store import store_access
from incsnap.spark.cluster.machine_answers import task_failure
from incsnap.spark.cluster.machines import _looking, _Question, files_of_tasks
from lab.object_store import ObjectStore
from tests.support.properties import NEEDED

_LOST = (
    "Job aborted due to stage failure: Task 0 in stage 0.0 failed 4 times, most recent failure: Lost task 0.3 in stage"
    " 0.0 (TID 3) (10.0.0.7 executor 1): "
)


@pytest.mark.parametrize(
    ("error", "problem"),
    [
        (
            'java.io.IOException: Cannot run program "/opt/incsnap/bin/incsnap-python": error=2, No such file',
            "executor 1 on 10.0.0.7 has no program /opt/incsnap/bin/incsnap-python",
        ),
        ("ModuleNotFoundError: No module named 'pyarrow'", "executor 1 on 10.0.0.7 has no Python module pyarrow"),
        (
            "[PYTHON_VERSION_MISMATCH] Python in worker has different version: 3.11 than that in driver: 3.12, PySpark",
            "executor 1 on 10.0.0.7 runs Python 3.11, the driver 3.12",
        ),
    ],
)
def test_the_machine_is_named_that_cannot_run_a_task(error: str, problem: str) -> None:
    assert task_failure(_LOST + error).problem == problem


def test_another_error_keeps_its_message() -> None:
    assert task_failure(_LOST + "java.lang.OutOfMemoryError: heap\n\tat java.base/x").problem.endswith(
        "OutOfMemoryError: heap"
    )


def test_the_files_are_those_that_tasks_open() -> None:
    settings = from_properties(
        {
            **NEEDED,
            "database.ssl.truststore": "/etc/ca.pem",
            "producer.ssl.truststore.location": "/etc/kafka.pem",
            "producer.linger.ms": "5",
        }
    ).settings

    assert dict(files_of_tasks(settings)) == {
        "database.ssl.truststore": "/etc/ca.pem",
        "producer.ssl.ca.location": "/etc/kafka.pem",
    }


def test_an_executor_reaches_a_bucket_as_the_settings_say(
    object_store: ObjectStore, bucket_folder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    access = store_access(bucket_folder, object_store.properties(""), {})
    Files(bucket_folder).write("machines/token", b"token")
    question = _Question(bucket_folder, access.model_dump_json(context={"reveal": True}), "token", ())
    # An executor's process has no access to the store yet.
    monkeypatch.setattr(process, "_access", {})
    monkeypatch.setattr(process, "_clients", {})
    ((_, _, _, read, written),) = _looking(question, 0.0)([])
    assert read
    assert Files(bucket_folder).exists(written)
    assert access.secret_key.get_secret_value() not in repr(question)
