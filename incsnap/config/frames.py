"""Settings of a DataFrame of changes, from a connector's file, from options of `spark.readStream`, or from both.

Options have Debezium's names and override the file. Spark passes them in lower case, so each is matched to a known name
without regard to case. Settings that only concern Kafka are reset.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Mapping

from incsnap.config.declarations import SETTINGS
from incsnap.config.declarations.kinds import FLAG, TABLE, Kind
from incsnap.config.documents import read_document
from incsnap.config.load import Loaded, from_properties
from incsnap.config.patterns import TableFilter
from incsnap.config.reader import SettingsReader
from incsnap.config.servers import KafkaSettings
from incsnap.config.settings import Formats, FrameSettings, HeartbeatSettings, Settings
from incsnap.config.without_effect import WITHOUT_EFFECT
from incsnap.envelope.envelope_settings import FormatChoice
from incsnap.envelope.frame_format import DESCRIBED, IMAGES, ROW
from incsnap.errors import ConfigError
from incsnap.tables import TableId

#: Option for `merge_into` alone: rows come with a description of their columns, and statements that alter the table
#: come too (`tasks.described_rows`).
DESCRIBES = "described"
#: Options of the DataFrame itself, in lower case.
OWN = frozenset({"config", "table", "envelope", "numpartitions", "path", DESCRIBES})
_NAMES = {name.lower(): name for name in {*SETTINGS, *WITHOUT_EFFECT}}
#: Prefixes of settings whose names hold a hash algorithm and a salt. Lower case would change both.
_NOT_AS_OPTIONS = ("column.mask.", "column.truncate.")
_TABLE = Kind("of the form database.table (one table; a name with dots in it in back-ticks)", TABLE.parse)
#: Snapshot modes that only a job to Kafka has, with the replacement in a DataFrame.
_OF_JOBS = {
    "initial_only": "Set the option snapshot.mode=initial, and begin the query with trigger(availableNow=True).",
    "when_needed": "Set the option snapshot.mode=initial. If the binlog is lost, begin again with"
    " other checkpoints for the query and for checkpoint.location.",
    "when_needed_no_data": "Set the option snapshot.mode=no_data. If the binlog is lost, begin again with"
    " other checkpoints for the query and for checkpoint.location.",
    "always": "Set the option snapshot.mode=initial, and signal execute-snapshot to read rows again.",
}
_HINT = "Correct the options of spark.readStream.format('incsnap'), or the file that `config` names."


def frame_settings(options: Mapping[str, str]) -> Loaded:
    """Return the settings of a DataFrame of changes for the options of `spark.readStream`.

    Raise ConfigError with one line for each problem. `FrameSettings.columns` stays empty, because options do not tell
    the columns of the DataFrame. `of_table` fills this field.
    """
    given = _given(options)
    file = options.get("config", "")
    of_file = read_document(file) if file else {}
    loaded = from_properties({**of_file, **given}, source=file or "the options", to_kafka=False)
    own = SettingsReader({name: options.get(name, "") for name in ("table", "envelope", DESCRIBES)})
    table: TableId | None = own.read("table", _TABLE)
    envelope: bool = own.read("envelope", FLAG, "false")
    described: bool = own.read(DESCRIBES, FLAG, "false")
    if own.problems:
        raise ConfigError(own.problems[0], _HINT)
    if envelope and table is None:
        raise ConfigError("envelope=true needs the option table", _HINT)
    settings = loaded.settings
    if "kafka" in settings.signals.channels and not settings.signals.kafka_bootstrap_servers:
        raise ConfigError(
            "signal.enabled.channels has kafka, but no brokers are set",
            "Set signal.kafka.bootstrap.servers, or remove kafka from signal.enabled.channels.",
        )
    name = "several tables" if table is None else str(table)
    changed: dict[str, object] = {
        "kafka": KafkaSettings(bootstrap_servers=""),
        "frame": FrameSettings(table=table, envelope=envelope, described=described),
        # A DataFrame counts no rows, so its metrics would be empty.
        "monitoring": settings.monitoring.model_copy(update={"port": None}),
    }
    if "checkpoint.location" not in given:
        # The location in the file belongs to the job to Kafka.
        changed["checkpoint_location"] = f"{settings.checkpoint_location.rstrip('/')}/frames/{name.replace(' ', '-')}"
    if "database.server.id" not in given:
        # The id in the file belongs to the job to Kafka. Each table's stream is a replica with its own id.
        stream = zlib.crc32(f"{settings.topic_prefix}\0{name}".encode())
        changed["mysql"] = settings.mysql.model_copy(update={"server_id": 100_000_000 + stream % 4_000_000_000})
    if table is not None:
        changed |= _of_one_table(settings, table, DESCRIBED if described else IMAGES if envelope else ROW)
    return Loaded(settings.model_copy(update=changed), loaded.warnings)


def of_table(settings: Settings, table: TableId | None, columns: str) -> Settings:
    """Return `settings` completed with what is known once the schema of the DataFrame is known.

    `table` has its name as the server writes it; None means several tables. `columns` is a digest of the DataFrame's
    columns.
    """
    assert settings.frame is not None
    return settings.model_copy(update={"frame": settings.frame.model_copy(update={"table": table, "columns": columns})})


def settings_of_table(settings: Settings, table: TableId, *, envelope: bool) -> Settings:
    """Return a job's settings for reading one table as a DataFrame, without the transforms of its records."""
    plain = settings.model_copy(update={"transforms": (), "skipped_operations": frozenset({"t"})})
    frame = FrameSettings(table=table, envelope=envelope)
    return plain.model_copy(update={"frame": frame, **_of_one_table(plain, table, IMAGES if envelope else ROW)})


def refuse_mode(mode: str) -> None:
    """Raise ConfigError if `mode` (`snapshot.mode`) is one that only a job to Kafka has.

    Streams of changes call this when they start.
    """
    if mode in _OF_JOBS:
        raise ConfigError(f"snapshot.mode={mode}: a stream of changes begins with initial or no_data", _OF_JOBS[mode])


def _given(options: Mapping[str, str]) -> dict[str, str]:
    """Return the options that are settings, with their names in the proper case.

    Raise ConfigError for names with a salt.
    """
    settings = {}
    for name, value in options.items():
        low = name.lower()
        if low in OWN:
            continue
        if low.startswith(_NOT_AS_OPTIONS):
            raise ConfigError(
                f"{name}: Spark passes names of options in lower case, and this name has capital letters",
                "Set it in a properties file, and name this file in the option config.",
            )
        settings[_NAMES.get(low, low)] = value
    return settings


def _of_one_table(settings: Settings, table: TableId, values: FormatChoice) -> dict[str, object]:
    """Return changes to the settings for a DataFrame of one table: reset what only shapes Kafka records.

    Raise ConfigError if transforms are set, because they would have changed rows.
    """
    if settings.transforms:
        raise ConfigError(
            "transforms: they change Kafka's records, and a DataFrame of one table has no such records",
            "Set the option transforms to an empty text, and transform with Spark. Or read without the option table.",
        )
    exact = (re.escape(str(table)),)
    notified = tuple(channel for channel in settings.notifications.channels if channel != "sink")
    return {
        "tables": TableFilter(table_include=exact, signal_table=settings.tables.signal_table),
        "formats": Formats(value=values),
        "tombstones_on_delete": False,
        "transaction_metadata": False,
        "include_schema_changes": False,
        "include_query": False,
        "heartbeat": HeartbeatSettings(),
        "notifications": settings.notifications.model_copy(update={"channels": notified}),
    }
