"""Which rows a job reads at its start, and where in the binlog a new one begins."""

from __future__ import annotations

import re

from incsnap.config.patterns import split_list
from incsnap.config.reading import SettingsReader
from incsnap.config.settings import SNAPSHOT_MODES, SnapshotSettings, StartPlace
from incsnap.errors import shorten
from incsnap.gtid import GtidSet
from incsnap.tables import TableId
from signals.condition import condition_problem

_MODE = "snapshot.mode"
_OVERRIDES = "snapshot.select.statement.overrides"
_GTIDS, _FILE, _POSITION = "incsnap.start.gtid.set", "incsnap.start.binlog.file", "incsnap.start.binlog.position"
#: What Debezium called them, and what they are called now.
_OLD_NAMES = {"schema_only": "no_data", "never": "no_data", "schema_only_recovery": "recovery"}
#: Modes that are decided by something that cannot be asked here.
_NOT_HERE = {
    "custom": "it names a Java class of your own, which does not run here",
    "configuration_based": "Debezium puts a mode together of snapshot.mode.configuration.based.*",
}
#: The first event of a binlog file.
_FIRST_POSITION = 4
_NAME = r"`(?:[^`]|``)+`|[^\s`.,;()'\"]+"
_SELECT = re.compile(
    rf"SELECT\s+\*\s+FROM\s+(?:(?P<database>{_NAME})\s*\.\s*)?(?P<table>{_NAME})(?:\s+WHERE\s+(?P<condition>.+?))?\s*;?",
    re.I | re.S,
)
_QUOTED = re.compile(r"""'(?:[^'\\]|\\.|'')*'|"(?:[^"\\]|\\.|"")*"|`(?:[^`]|``)*`""", re.S)
_INNERMOST = re.compile(r"\([^()]*\)")
#: What may come behind a WHERE: all of them are reserved words.
_CLAUSE = re.compile(
    r"(?<![.\w$@])(?:GROUP|HAVING|WINDOW|ORDER|LIMIT|UNION|EXCEPT|INTERSECT|FOR|LOCK|INTO|PROCEDURE)\b", re.I
)


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
    )


def _mode(reading: SettingsReader) -> str:
    given = reading.text(_MODE, SNAPSHOT_MODES[0]).lower()
    if given in _NOT_HERE:
        allowed = " or ".join(SNAPSHOT_MODES)
        reading.problem(_MODE, f"possible: {_NOT_HERE[given]}; name what it comes to, of {allowed}")
        return SNAPSHOT_MODES[0]
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


def _conditions(reading: SettingsReader) -> dict[str, str]:
    """The condition of each table whose rows ``snapshot.select.statement.overrides`` narrows.

    Chunks are read by key, so of a statement nothing but its WHERE can be taken over.
    """
    found: dict[str, str] = {}
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
        condition, problem = _condition_of(given[text], table)
        if problem:
            reading.problems.append(
                f"{name}: {problem}. Write SELECT * FROM {table} WHERE <condition>, leave columns out by"
                " column.exclude.list; or take it out, and signal execute-snapshot with additional-conditions"
            )
        elif condition:
            found[str(table)] = condition
    if idle := sorted(set(given) - set(listed)):
        reading.warnings.append(f"{_OVERRIDES} does not name {', '.join(idle)}: {_OVERRIDES}.{idle[0]} has no effect")
    return found


def _condition_of(statement: str, table: TableId) -> tuple[str, str]:
    """The statement's condition, "" for all rows; and why it is none that a snapshot can have."""
    found = _SELECT.fullmatch(statement.strip())
    if found is None:
        return "", "it is not a SELECT * of one table with a WHERE at most"
    of = (found["database"] or table.database, found["table"])
    if tuple(part.strip("`").replace("``", "`") for part in of) != (table.database, table.table):
        return "", f"it does not read {table}"
    condition = found["condition"] or ""
    if not condition:
        return "", ""
    if problem := condition_problem(condition):
        return "", f"its WHERE is not one condition: {problem}"
    outline, shorter = "", _QUOTED.sub("''", condition)
    while outline != shorter:
        outline, shorter = shorter, _INNERMOST.sub("", shorter)
    if clause := _CLAUSE.search(outline):
        return "", f"behind its WHERE stands {clause[0].upper()}"
    return condition, ""


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
