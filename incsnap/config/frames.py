"""The settings of a DataFrame of changes: a connector's file, the options of ``spark.readStream``, or both.

Options have Debezium's names and stand above the file. Spark gives them in small letters, so they are found again by
the names that there are. What belongs to Kafka alone is put aside.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Mapping

from incsnap.config.documents import read_document
from incsnap.config.load import Loaded, from_properties
from incsnap.config.names import ELSEWHERE, OBEYED
from incsnap.config.patterns import TableFilter
from incsnap.config.servers import KafkaSettings
from incsnap.config.settings import Formats, FrameSettings, HeartbeatSettings, Settings
from incsnap.envelope.frame_format import IMAGES, ROW
from incsnap.errors import ConfigError
from incsnap.tables import TableId

#: Options of the DataFrame itself.
OWN = frozenset({"config", "table", "envelope", "numpartitions", "path"})
_NAMES = {name.lower(): name for name in OBEYED | ELSEWHERE}
#: Their names hold what small letters destroy: the algorithm of a hash, its salt.
_NOT_AS_OPTIONS = ("column.mask.", "column.truncate.")
#: Modes of Kafka's job, and what does the same here.
_OF_JOBS = {
    "initial_only": "Set the option snapshot.mode=initial, and begin the query with trigger(availableNow=True).",
    "when_needed": "Set the option snapshot.mode=initial. Where the binlog is gone, begin anew: other checkpoints for"
    " the query and for checkpoint.location.",
    "always": "Set the option snapshot.mode=initial, and signal execute-snapshot where rows are to be read again.",
}
_HINT = "Correct the options of spark.readStream.format('incsnap'), or the file that `config` names."


def frame_settings(options: Mapping[str, str]) -> Loaded:
    """Raises ``ConfigError`` with one line for each problem. The columns are not known yet: see ``of_table``."""
    given = _given(options)
    file = options.get("config", "")
    of_file = read_document(file) if file else {}
    loaded = from_properties({**of_file, **given}, source=file or "the options", to_kafka=False)
    table, envelope = _table(options), _flag(options, "envelope")
    if envelope and table is None:
        raise ConfigError("envelope=true needs the option table", _HINT)
    settings = loaded.settings
    _refuse_signal_topic(settings)
    name = "several tables" if table is None else str(table)
    changed: dict[str, object] = {
        "kafka": KafkaSettings(bootstrap_servers=""),
        "frame": FrameSettings(table=table, envelope=envelope),
        # Rows are not counted here, so metrics would tell of none.
        "monitoring": settings.monitoring.model_copy(update={"port": None}),
    }
    if "checkpoint.location" not in given:
        # The file's is its Kafka job's.
        changed["checkpoint_location"] = f"{settings.checkpoint_location.rstrip('/')}/frames/{name.replace(' ', '-')}"
    if "database.server.id" not in given:
        # So is the file's id, and each table's stream is a replica of its own.
        stream = zlib.crc32(f"{settings.topic_prefix}\0{name}".encode())
        changed["mysql"] = settings.mysql.model_copy(update={"server_id": 100_000_000 + stream % 4_000_000_000})
    if table is not None:
        changed |= _of_one_table(settings, table, envelope=envelope)
    return Loaded(settings.model_copy(update=changed), loaded.warnings)


def of_table(settings: Settings, table: TableId | None, columns: str) -> Settings:
    """What only the server knows. ``table``: as it writes the name, None where there are several; ``columns``: a digest
    of them, as the DataFrame has them."""
    assert settings.frame is not None
    return settings.model_copy(update={"frame": settings.frame.model_copy(update={"table": table, "columns": columns})})


def refuse_mode(mode: str) -> None:
    """Raises ``ConfigError`` for a ``snapshot.mode`` that asks for more of each start than a query of a stream does."""
    if mode in _OF_JOBS:
        raise ConfigError(f"snapshot.mode={mode}: a stream of changes begins with initial or no_data", _OF_JOBS[mode])


def _given(options: Mapping[str, str]) -> dict[str, str]:
    settings = {}
    for name, value in options.items():
        low = name.lower()
        if low in OWN:
            continue
        if low.startswith(_NOT_AS_OPTIONS):
            raise ConfigError(
                f"{name}: Spark gives the names of options in small letters, and this one has others",
                "Put it into a properties file, and name that by the option config.",
            )
        settings[_NAMES.get(low, low)] = value
    return settings


def _table(options: Mapping[str, str]) -> TableId | None:
    text = options.get("table", "")
    if not text:
        return None
    try:
        return TableId.parse(text)
    except ValueError:
        raise ConfigError(
            f"table: {text!r} is not of the form database.table (one table; a name with dots in it in back-ticks)",
            _HINT,
        ) from None


def _flag(options: Mapping[str, str], name: str) -> bool:
    text = options.get(name, "false").lower()
    if text not in ("true", "false"):
        raise ConfigError(f"{name}: {text!r} is not true or false", _HINT)
    return text == "true"


def _refuse_signal_topic(settings: Settings) -> None:
    if "kafka" in settings.signals.channels and not settings.signals.kafka_bootstrap_servers:
        raise ConfigError(
            "signal.enabled.channels has kafka, and no brokers are given",
            "Set signal.kafka.bootstrap.servers, or leave kafka out of signal.enabled.channels.",
        )


def _of_one_table(settings: Settings, table: TableId, *, envelope: bool) -> dict[str, object]:
    """What shapes Kafka's records is nothing to columns. Raises ``ConfigError`` for what would have changed rows."""
    if settings.transforms:
        raise ConfigError(
            "transforms: they change Kafka's records, and a DataFrame of one table has none",
            "Set the option transforms to an empty text, and do it with Spark; or read without the option table.",
        )
    exact = (re.escape(str(table)),)
    notified = tuple(channel for channel in settings.notifications.channels if channel != "sink")
    return {
        "tables": TableFilter(table_include=exact, signal_table=settings.tables.signal_table),
        "formats": Formats(value=IMAGES if envelope else ROW),
        "tombstones_on_delete": False,
        "transaction_metadata": False,
        "include_schema_changes": False,
        "include_query": False,
        "heartbeat": HeartbeatSettings(),
        "notifications": settings.notifications.model_copy(update={"channels": notified}),
    }
