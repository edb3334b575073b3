"""Which rows a job reads at its start, and where in the binlog a new one begins."""

from __future__ import annotations

from incsnap.config.patterns import split_list
from incsnap.config.reading import SettingsReader
from incsnap.config.snapshot_settings import SNAPSHOT_MODES, SnapshotSettings, StartPlace
from incsnap.errors import shorten
from incsnap.gtid import GtidSet
from incsnap.snapshot.throttle import REPLICA_LAG, setting_of
from incsnap.tables import TableId
from signals.parse import THROTTLE_LIMITS
from signals.select_statement import condition_of

_MODE = "snapshot.mode"
_OVERRIDES = "snapshot.select.statement.overrides"
_REPLICAS = "incsnap.snapshot.throttle.replicas"
_GTIDS, _FILE, _POSITION = "incsnap.start.gtid.set", "incsnap.start.binlog.file", "incsnap.start.binlog.position"
#: What Debezium called them, and what they are called now.
_OLD_NAMES = {"schema_only": "no_data", "never": "no_data", "schema_only_recovery": "recovery"}
_BASED = "configuration_based"
_PARTS = f"{_MODE}.configuration.based."
_DATA, _STREAM = f"{_PARTS}snapshot.data", f"{_PARTS}start.stream"
_ON_DATA_ERROR = f"{_PARTS}snapshot.on.data.error"
#: The first event of a binlog file.
_FIRST_POSITION = 4


def snapshot(reading: SettingsReader) -> SnapshotSettings:
    patterns = split_list(reading.text("snapshot.include.collection.list"))
    size = reading.integer("incremental.snapshot.chunk.size", 0, 1, 10_000_000)
    threads = reading.integer("snapshot.max.threads", 0, 1, 1024)
    return SnapshotSettings(
        mode=_mode(reading),
        include=tuple(each for each in patterns if reading.sound("snapshot.include.collection.list", each)),
        conditions=_conditions(reading),
        chunk_size=size or None,
        threads=threads or None,
        latency_target_ms=reading.integer("incsnap.latency.target.ms", 250, 1, 60_000),
        throttle=_throttle(reading),
        throttle_replicas=_replicas(reading),
    )


def _throttle(reading: SettingsReader) -> dict[str, int]:
    """The limits that are given; 0 is none."""
    limits = {name: reading.integer(setting_of(name), 0, 0, most) for name, most in THROTTLE_LIMITS.items()}
    if limits[REPLICA_LAG] and not reading.given(_REPLICAS):
        reading.problems.append(
            f"{setting_of(REPLICA_LAG)}: whose lag is not said; name the replicas by {_REPLICAS}=host:port"
        )
    return {name: most for name, most in limits.items() if most}


def _replicas(reading: SettingsReader) -> tuple[tuple[str, int], ...]:
    replicas = []
    for text in split_list(reading.text(_REPLICAS)):
        host, _, port = (text if ":" in text else f"{text}:3306").rpartition(":")
        host = host.removeprefix("[").removesuffix("]")
        if not host or "/" in host or not port.isdecimal() or not 0 < int(port) < 65536:
            reading.problem(_REPLICAS, "host:port[,host:port...]")
            return ()
        replicas.append((host, int(port)))
    return tuple(replicas)


def _mode(reading: SettingsReader) -> str:
    given = reading.text(_MODE, SNAPSHOT_MODES[0]).lower()
    if given == "custom":
        allowed = " or ".join(SNAPSHOT_MODES)
        why = "it names a Java class of your own, which does not run here"
        reading.problem(_MODE, f"possible: {why}; name what it comes to, of {allowed}")
        return SNAPSHOT_MODES[0]
    if given == _BASED:
        return _put_together(reading)
    if idle := [name for name in (_DATA, _STREAM, _ON_DATA_ERROR) if reading.flag(name, False)]:
        reading.warnings.append(f"Without effect where {_MODE} is not {_BASED}: {', '.join(idle)}")
    if given in _OLD_NAMES:
        reading.warnings.append(f"{_MODE}={given} is an old name and taken as {_OLD_NAMES[given]}")
        given = _OLD_NAMES[given]
    elif given not in SNAPSHOT_MODES:
        reading.problem(_MODE, f"one of: {', '.join(SNAPSHOT_MODES)}")
        return SNAPSHOT_MODES[0]
    if given == "recovery":
        reading.warnings.append(
            f"{_MODE}=recovery rebuilds Debezium's schema history; here there is none, and the job goes on from its"
            " offset as with no_data"
        )
    return given


def _put_together(reading: SettingsReader) -> str:
    """What ``configuration_based`` comes to: Debezium asks its parts at each start, whether there is an offset or not.

    Those about schemas say nothing here: tables are described by the server, and there is no schema history.
    """
    reads, streams = reading.flag(_DATA, False), reading.flag(_STREAM, False)
    reads_when_lost = reading.flag(_ON_DATA_ERROR, False)
    mode, instead = "", ""
    if reads and not streams:
        instead = f"{_STREAM} is false: name {_MODE}=initial_only, which reads once and not at each start"
    elif not streams:
        instead = f"neither {_DATA} nor {_STREAM} is true, so nothing would be done: set one of them, or name a mode"
    elif reads_when_lost:
        instead = (
            f"{_ON_DATA_ERROR} is true: name {_MODE}=when_needed, which reads at a job's beginning and where the binlog"
            f" is gone; or take it out, for {'a reading at each start' if reads else 'no reading at all'}"
        )
    else:
        mode = "always" if reads else "no_data"
    if instead:
        reading.problems.append(f"{_MODE}: {_BASED} comes to no mode here. {instead}")
        return SNAPSHOT_MODES[0]
    once = "; initial reads only once" if reads else ""
    reading.warnings.append(f"{_MODE}={_BASED} comes to {mode}, by {_DATA} and {_STREAM}{once}")
    return mode


def _conditions(reading: SettingsReader) -> dict[str, str]:
    """The condition of each table whose rows ``snapshot.select.statement.overrides`` narrows."""
    conditions: dict[str, str] = {}
    listed = split_list(reading.text(_OVERRIDES))
    given = reading.prefixed(f"{_OVERRIDES}.")
    for text in listed:
        try:
            table = TableId.parse(text)
        except ValueError:
            reading.problem(_OVERRIDES, f"a list of tables as database.table ({shorten(text)})")
            continue
        name = f"{_OVERRIDES}.{text}"
        if not given.get(text):
            reading.warnings.append(f"{_OVERRIDES} names {text}, but {name} is not given: all its rows are read")
            continue
        condition, problem = condition_of(given[text], table.database, table.table)
        if problem:
            reading.problems.append(
                f"{name}: {problem}. Write SELECT * FROM {table} WHERE <condition>, leave columns out by"
                " column.exclude.list; or take it out, and signal execute-snapshot with additional-conditions"
            )
        elif condition:
            conditions[str(table)] = condition
    if idle := sorted(set(given) - set(listed)):
        reading.warnings.append(f"{_OVERRIDES} does not name {', '.join(idle)}: {_OVERRIDES}.{idle[0]} has no effect")
    return conditions


def start_place(reading: SettingsReader) -> StartPlace:
    gtids = None
    if reading.given(_GTIDS):
        try:
            gtids = str(GtidSet.parse(reading.text(_GTIDS)))
        except ValueError as error:
            reading.problem(_GTIDS, f"a GTID set, as uuid:1-5,uuid:1-9: {shorten(error)}")
    file = reading.text(_FILE)
    position = reading.integer(_POSITION, _FIRST_POSITION, _FIRST_POSITION)
    if reading.given(_GTIDS) and reading.given(_FILE):
        reading.problems.append(f"{_FILE}: only one of it and {_GTIDS} may be given; the latter is the surer one")
    if reading.given(_POSITION) and not reading.given(_FILE):
        reading.problems.append(f"{_POSITION}: it says nothing without {_FILE}")
    return StartPlace(gtid_set=gtids, file=file, position=position)
