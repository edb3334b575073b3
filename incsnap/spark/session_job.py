"""A job in a Spark session of the caller's own: `incsnap.start` begins it, and a `Job` follows and ends it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from decimal import Decimal
from uuid import uuid4

from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from incsnap.checkpoint.location import own_part
from incsnap.checkpoint.lock import checkpoint_lock
from incsnap.checkpoint.object_store import set_access
from incsnap.config.settings import Settings
from incsnap.errors import ConfigError, shorten
from incsnap.monitoring.job_status import Watch
from incsnap.monitoring.signal_sender import send_signal
from incsnap.monitoring.status import JobStatus
from incsnap.spark import job as spark_job
from incsnap.spark.prefix_start import PrefixStart
from incsnap.spark.query_watch import begin_watch, end_with
from incsnap.spark.spark_release import require_admission_control
from signals.regex import literal, named
from signals.send import new_id

#: Seconds to wait for the checkpoint of this program's previous query: a thread of that query releases it.
_PATIENCE_SECONDS = 10.0
#: Most digits of a DECIMAL.
_MOST_DIGITS = 65


class Job:
    """A job that runs in the caller's Spark session. `incsnap.start` returns it.

    For one release a `Job` also has the attributes of its query, such as `isActive`, `lastProgress` and
    `awaitTermination`. Use those of `job.query`. `status` is the exception: Spark's is `job.query.status`.

    >>> job = incsnap.start(spark, incsnap.Settings.from_file("shop.properties"))
    >>> job.query.isActive, job.settings.topic_prefix
    (True, 'shop')
    >>> job.stop()
    """

    def __init__(self, query: StreamingQuery, settings: Settings, watch: Watch) -> None:
        #: Spark's query. `query.awaitTermination()` waits for its end and raises its error.
        self.query = query
        self.settings = settings
        self._watch = watch

    def status(self) -> JobStatus:
        """Return the job's status, at most a second old: state, lag in ms, rates a second, and snapshots.

        >>> job.status().state
        'running'
        """
        return self._watch.status()

    def signal(self, kind: str, data: Mapping[str, object] | None = None, *, name: str | None = None) -> str:
        """Send a signal to the job and return the signal's id. `name`: an id of your own, in place of a new UUID.

        `kind` and `data` are Debezium's type and data of a signal (docs/operation.md). The signal goes by the first of
        `signal.enabled.channels`; the job acts on it with one of its next batches. Raise ConfigError if the job would
        ignore the signal. Raise ServerUnreachable or IncsnapError if the signal cannot be sent.

        >>> job.signal("execute-snapshot", {"data-collections": ["shop.orders"]}, name="orders-again")
        'orders-again'
        """
        name = name or new_id()
        send_signal(self.settings, name, kind, data or {})
        return name

    def reread(
        self,
        table: str,
        keys: DataFrame | Sequence[Mapping[str, object] | Row],
        *,
        deletes_absent: bool = False,
        name: str | None = None,
    ) -> str:
        """Ask the job to read the rows of `table` (`db.table`) with these keys again, and return the signal's id.

        `table` is a name and no expression. Its parts may stand in back-ticks, as in SQL. `keys` have the columns and
        the form of the record's key: dicts, Rows, or a DataFrame with one row for each key. With `deletes_absent` a key
        that the table does not have becomes a deletion and a tombstone. A DataFrame is written as Parquet into
        `incsnap/given-keys` of the checkpoint first. These files stay: delete them when the snapshot has ended. Errors
        are those of `signal`, and ConfigError for values that JSON does not have.

        >>> job.reread("shop.orders", [{"id": 5}, {"id": 7}], name="orders-5-7")
        'orders-5-7'
        """
        table = table.strip()
        collection = table if named(table) else literal(table)
        data: dict[str, object] = {"type": "incremental", "data-collections": [collection]}
        if deletes_absent:
            data["incsnap-absent"] = "delete"
        name = name or new_id()
        if isinstance(keys, DataFrame):
            place = f"{own_part(self.settings.checkpoint_location)}/given-keys/{uuid4().hex}"
            keys.write.parquet(place)
            data["incsnap-keys-file"] = place
        else:
            data["incsnap-keys"] = [_as_json(key) for key in keys]
        return self.signal("execute-snapshot", data, name=name)

    def stop(self) -> None:
        """Stop the job at the end of a batch, and return when it has stopped.

        The running batch is waited for, for 60 s at most. Then it is interrupted, and the next start repeats it. Do
        nothing if the job has ended.

        >>> job.stop()
        >>> job.query.isActive
        False
        """
        spark_job.stop(self.query, self.settings)

    def __getattr__(self, name: str) -> object:
        """Return an attribute of the query: older programs take this object for a StreamingQuery."""
        if name.startswith("_"):
            raise AttributeError(f"a Job has no attribute {name!r}")
        return getattr(self.query, name)


def _as_json(key: object) -> dict[str, object]:
    """Return a key of a list with values that JSON has. Raise ConfigError if it has other values."""
    members = key.asDict() if isinstance(key, Row) else key
    if not isinstance(members, Mapping):
        raise ConfigError(
            f"{shorten(key)} is no key: it is of type {type(key).__name__}",
            "Give reread a list of dicts, such as [{'id': 5}, {'id': 7}], a list of Rows, or a DataFrame.",
        )
    return {name: _json_value(value, name, key) for name, value in members.items()}


def _json_value(value: object, name: str, key: object) -> object:
    """Return a Decimal without a fraction as a whole number, and any other value of JSON as it is.

    Raise ConfigError for a value that JSON does not have.
    """
    if isinstance(value, Decimal) and value.is_finite() and value.adjusted() < _MOST_DIGITS:
        whole = value.to_integral_value()
        if value == whole:
            return int(whole)
    if value is None or isinstance(value, str | int | float):
        return value
    raise ConfigError(
        f"{name} of the key {shorten(key)} is of type {type(value).__name__}, which JSON has not",
        "Write the value as the JSON of the record's key has it. By the settings a DATE is the days since 1970, a"
        " DATETIME the milliseconds or microseconds since 1970, and a DECIMAL or bytes are base64.",
    )


def start(spark: SparkSession, settings: Settings, *, replace_job: bool = False) -> Job:
    """Start the job with these settings on `spark`, and return it.

    The same `checkpoint.location` continues where the last run stopped. With `snapshot.mode=initial_only` the job ends
    by itself. The job does not restart after an error, unlike `incsnap run`: follow `job.query`. `replace_job`: take
    over from another job with the same `topic.prefix`, which then ends; without it such a start is refused.

    Raise PrefixTaken if another job has the `topic.prefix`. Raise ServerUnreachable or SinkError if a new job cannot
    find its beginning. Raise OffsetError if the checkpoint is incomplete. Raise ConfigError if Spark is too old or
    another process has the checkpoint. If another start takes the prefix later, the query fails with PrefixTaken in its
    text. Run `incsnap check` first: `start` checks nothing else.

    >>> job = incsnap.start(spark, incsnap.Settings.from_file("shop.properties"))
    >>> job.stop()
    """
    require_admission_control()
    location = settings.checkpoint_location
    set_access(location, settings.store)
    with ExitStack() as stack:
        stack.enter_context(checkpoint_lock(location, own_part(location), _PATIENCE_SECONDS))
        # The watch begins before the query. If the port of its metrics is taken, no query has to be ended.
        watch = begin_watch(settings, own_part(location), (), stack)
        prefix = PrefixStart(settings, watch.outages, replace_job=replace_job)
        stack.callback(prefix.close)
        query = spark_job.begin(spark, settings, spark_job.Run(watch, prefix, uuid4().hex))
        end_with(query, watch, stack.pop_all())
    return Job(query, settings, watch)


def stop(query: Job | StreamingQuery, settings: Settings) -> None:
    """Stop the job, or its query, at the end of a batch. This is the older form of `Job.stop`."""
    spark_job.stop(query.query if isinstance(query, Job) else query, settings)
