"""Tests of the access to an object store: set once, under Spark's names or in the environment, and never shown."""

from __future__ import annotations

import pytest

from incsnap.config.frames import frame_settings
from incsnap.config.load import from_properties
from incsnap.config.object_store import store_access
from incsnap.config.record_form import record_form
from incsnap.config.settings import Settings
from tests.support.properties import NEEDED

S3A = "spark.hadoop.fs.s3a."
JOB = {
    **NEEDED,
    "database.server.id": "5",
    "checkpoint.location": "s3a://lake/shop",
    S3A + "access.key": "AKIA-OURS",
    S3A + "secret.key": "very-secret",
    S3A + "endpoint": "minio:9000",
    S3A + "connection.ssl.enabled": "false",
    S3A + "path.style.access": "true",
}


def settings(**options: str) -> Settings:
    return from_properties({**JOB, **options}, source="a test").settings


def test_what_spark_is_told_holds_for_our_own_client() -> None:
    store = settings().store

    assert store.endpoint == "http://minio:9000"
    assert store.path_style
    assert store.access_key.get_secret_value() == "AKIA-OURS"
    assert Settings.from_json(settings().to_json()).store == store


def test_what_the_environment_says_holds_for_spark() -> None:
    environment = {
        "AWS_ACCESS_KEY_ID": "AKIA",
        "AWS_SECRET_ACCESS_KEY": "s",
        "AWS_SESSION_TOKEN": "t",
        "AWS_REGION": "eu-north-1",
        "AWS_ENDPOINT_URL": "https://store",
    }
    assert store_access("s3a://lake/job", {}, environment).for_spark() == {
        S3A + "access.key": "AKIA",
        S3A + "secret.key": "s",
        S3A + "session.token": "t",
        S3A + "endpoint": "https://store",
        S3A + "endpoint.region": "eu-north-1",
    }
    assert store_access("/var/lib/job", {}, environment).for_spark() == {}
    # A token belongs to its key.
    access = store_access("s3a://lake/job", {S3A + "access.key": "B", S3A + "secret.key": "b"}, environment)
    assert access.access_key.get_secret_value() == "B"
    assert not access.session_token.get_secret_value()


def test_what_is_said_of_one_bucket_goes_before_what_is_said_of_all() -> None:
    spark = {S3A + "endpoint": "https://all", S3A + "bucket.lake.endpoint": "https://one"}

    assert store_access("s3a://lake/job", spark, {}).endpoint == "https://one"
    assert store_access("s3a://sea/job", spark, {}).endpoint == "https://all"


@pytest.mark.parametrize("scheme", ["s3", "s3n", "s3a"])
def test_all_names_of_the_scheme_are_sparks(scheme: str) -> None:
    assert settings(**{"checkpoint.location": f"{scheme}://lake/shop"}).checkpoint_location == "s3a://lake/shop"


def test_keys_are_in_no_text_and_in_no_form() -> None:
    job = settings()
    for text in (repr(job), str(job), job.model_dump_json(), repr(job.store), repr(job.model_dump())):
        assert "very-secret" not in text
        assert "AKIA-OURS" not in text
    assert record_form(job) == record_form(settings(**{S3A + "secret.key": "another"}))


def test_batches_have_a_pause_only_where_their_files_are_paid_for() -> None:
    assert settings().batch_interval_ms == 500
    assert settings(**{"poll.interval.ms": "100"}).batch_interval_ms == 100
    assert settings(**{"poll.interval.ms": "100", "checkpoint.location": "/var/lib/shop"}).batch_interval_ms == 0


def test_a_dataframe_is_told_by_its_options() -> None:
    options = {name.lower(): value for name, value in JOB.items() if name != "bootstrap.servers"}
    store = frame_settings({**options, "table": "shop.orders"}).settings.store

    assert store.secret_key.get_secret_value() == "very-secret"


def test_another_bucket_than_the_checkpoints_has_the_access_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name, raising=False)
    of_keys = {S3A + "bucket.keys.access.key": "AKIA-KEYS", S3A + "bucket.keys.secret.key": "key-secret"}
    for location in ("s3a://lake/shop", "/var/lib/shop"):
        given = settings(**of_keys, **{"checkpoint.location": location})
        job = Settings.from_json(given.to_json())

        assert job.store_of("s3a://keys/a").access_key.get_secret_value() == "AKIA-KEYS"
        for other in ("s3a://lake/keys", "s3://other/keys"):
            assert job.store_of(other).access_key.get_secret_value() == "AKIA-OURS"
        assert job.store_of("s3a://keys/a").endpoint == "http://minio:9000"
        for text in (repr(job), str(job), job.model_dump_json(), repr(job.store_of("s3a://keys/a"))):
            assert "key-secret" not in text


def test_the_checkpoints_bucket_keeps_the_access_of_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process of Spark may have another environment."""
    monkeypatch.setenv("AWS_REGION", "eu-north-1")
    job = Settings.from_json(settings().to_json())
    monkeypatch.setenv("AWS_REGION", "us-west-2")

    assert job.store_of("s3a://lake/keys").region == "eu-north-1"
    assert job.store_of("s3a://other/keys").region == "us-west-2"
