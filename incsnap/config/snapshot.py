"""Settings of snapshots: the rows that a job reads at its start, and where in the binlog a new job begins."""

from __future__ import annotations

from incsnap.config.declarations.snapshots import SNAPSHOT_MODES
from incsnap.config.patterns import split_list
from incsnap.config.reader import SettingsReader
from incsnap.config.settings import SnapshotSettings, StartPlace
from incsnap.errors import shorten
from incsnap.snapshot.throttle import REPLICA_LAG, setting_of
from incsnap.tables import TableId
from signals.parse import THROTTLE_LIMITS
from signals.select_statement import condition_of

_MODE = "snapshot.mode"
_OVERRIDES = "snapshot.select.statement.overrides"
_REPLICAS = "incsnap.snapshot.throttle.replicas"
_GTIDS, _FILE, _POSITION = "incsnap.start.gtid.set", "incsnap.start.binlog.file", "incsnap.start.binlog.position"
_AT = "incsnap.start.at"
_RECOVERY = "incsnap.gap.recovery"
#: Debezium's old names of modes, with the present names.
_OLD_NAMES = {"schema_only": "no_data", "schema_only_recovery": "recovery"}
#: Debezium's mode of a job that reads no rows and begins with the oldest binlog.
_NEVER = "never"
_BASED = "configuration_based"
_PARTS = f"{_MODE}.configuration.based."
_DATA, _STREAM = f"{_PARTS}snapshot.data", f"{_PARTS}start.stream"
_ON_DATA_ERROR = f"{_PARTS}snapshot.on.data.error"


def snapshot(reader: SettingsReader) -> SnapshotSettings:
    """Return the settings of snapshots. Add problems to `reader`."""
    mode = _mode(reader)
    if reader[_RECOVERY] == "differences" and mode != "when_needed":
        reader.warnings.append(f"{_RECOVERY} has no effect, because {_MODE} is not when_needed")
    return SnapshotSettings.read(reader, mode=mode, conditions=_conditions(reader), throttle=_throttle(reader))


def _throttle(reader: SettingsReader) -> dict[str, int]:
    """Return the limits on reading that are given, by name. 0 means no limit and is left out."""
    limits = {name: reader[setting_of(name)] for name in THROTTLE_LIMITS}
    if limits[REPLICA_LAG] and not reader.given(_REPLICAS):
        reader.problems.append(f"{setting_of(REPLICA_LAG)}: has no effect without {_REPLICAS}=host:port")
    return {name: most for name, most in limits.items() if most}


def _mode(reader: SettingsReader) -> str:
    """Return `snapshot.mode`, with old names replaced by present ones."""
    given: str = reader[_MODE].lower()
    if given == "custom":
        allowed = " or ".join(SNAPSHOT_MODES)
        reader.problem(_MODE, f"supported: it names a Java class, which does not run here. Set {allowed}")
        return SNAPSHOT_MODES[0]
    if given == _BASED:
        return _configuration_based(reader)
    if idle := [name for name in (_DATA, _STREAM, _ON_DATA_ERROR) if reader[name]]:
        reader.idle |= dict.fromkeys(idle, f"{_MODE} is not {_BASED}")
        reader.warnings.append(f"Settings without effect, because {_MODE} is not {_BASED}: {', '.join(idle)}")
    if given in _OLD_NAMES:
        reader.warnings.append(f"{_MODE}={given} is an old name of {_OLD_NAMES[given]}")
        given = _OLD_NAMES[given]
    elif given == _NEVER:
        reader.warnings.append(
            f"{_MODE}=never is an old mode: a new job begins with the oldest binlog and reads no rows, as with"
            f" {_MODE}=no_data and {_AT}=earliest"
        )
        given = "no_data"
    elif given not in SNAPSHOT_MODES:
        reader.problem(_MODE, f"one of: {', '.join(SNAPSHOT_MODES)}")
        return SNAPSHOT_MODES[0]
    if given == "recovery":
        reader.warnings.append(
            f"{_MODE}=recovery rebuilds Debezium's schema history. incsnap has no schema history: the job continues at"
            " its offset, as with no_data"
        )
    return given


def _configuration_based(reader: SettingsReader) -> str:
    """Return the mode that the parts of `configuration_based` amount to, or add a problem if there is none.

    Debezium evaluates the parts at each start, with or without an offset. The parts about schemas have no effect here:
    the server describes the tables, and there is no schema history.
    """
    reads, streams, reads_when_lost = reader[_DATA], reader[_STREAM], reader[_ON_DATA_ERROR]
    mode, instead = "", ""
    if reads and not streams:
        instead = f"{_STREAM} is false: set {_MODE}=initial_only, which reads once and not at each start"
    elif not streams:
        instead = f"neither {_DATA} nor {_STREAM} is true, so nothing would be done: set one of them, or another mode"
    elif reads_when_lost:
        instead = (
            f"{_ON_DATA_ERROR} is true: set {_MODE}=when_needed, which reads when a job is new and when the binlog is"
            f" lost; or remove this setting, for {'a snapshot at each start' if reads else 'no snapshot'}"
        )
    else:
        mode = "always" if reads else "no_data"
    if instead:
        reader.problems.append(f"{_MODE}: {_BASED} is no mode of incsnap with these settings. {instead}")
        return SNAPSHOT_MODES[0]
    once = "; initial reads only once" if reads else ""
    reader.warnings.append(f"{_MODE}={_BASED} means {mode}, because of {_DATA} and {_STREAM}{once}")
    return mode


def _conditions(reader: SettingsReader) -> dict[str, str]:
    """Return the WHERE condition of each table in `snapshot.select.statement.overrides`."""
    conditions: dict[str, str] = {}
    listed = split_list(reader[_OVERRIDES])
    given = reader.prefixed(f"{_OVERRIDES}.")
    for text in listed:
        try:
            table = TableId.parse(text)
        except ValueError:
            reader.problem(_OVERRIDES, f"a list of tables as database.table ({shorten(text)})")
            continue
        name = f"{_OVERRIDES}.{text}"
        if not given.get(text):
            reader.warnings.append(f"{_OVERRIDES} lists {text}, but {name} is missing: all rows of the table are read")
            continue
        condition, problem = condition_of(given[text], table.database, table.table)
        if problem:
            reader.problems.append(
                f"{name}: {problem}. Write SELECT * FROM {table} WHERE <condition>, and leave columns out by"
                " column.exclude.list. Or remove it, and signal execute-snapshot with additional-conditions"
            )
        elif condition:
            conditions[str(table)] = condition
    if idle := sorted(set(given) - set(listed)):
        reader.idle |= {f"{_OVERRIDES}.{name}": f"{_OVERRIDES} does not list the table" for name in idle}
        reader.warnings.append(f"{_OVERRIDES} does not list {', '.join(idle)}: {_OVERRIDES}.{idle[0]} has no effect")
    return conditions


def start_place(reader: SettingsReader) -> StartPlace:
    """Return where in the binlog a new job begins. Add problems to `reader`."""
    if len(places := [name for name in (_GTIDS, _FILE, _AT) if reader.given(name)]) > 1:
        safest = "; the GTID set is safer" if _GTIDS in places else ""
        reader.problems.append(f"{places[-1]}: set only one of {' and '.join(places)}{safest}")
    if reader.given(_POSITION) and not reader.given(_FILE):
        reader.problems.append(f"{_POSITION}: has no effect without {_FILE}")
    if not places and reader[_MODE].lower() == _NEVER:
        return StartPlace(time_us=0)
    # A reference to an empty value is a GTID set without transactions: the job begins with the server's first one.
    is_empty = reader.given(_GTIDS) and not reader.text(_GTIDS)
    return StartPlace.read(reader, **({"gtid_set": ""} if is_empty else {}))
