"""Parsing a record into a signal by Debezium's rules, without ever raising an error.

A bad record becomes an `InvalidSignal` that says what is wrong and what would be right: an operator's mistake must not
stop a stream. https://debezium.io/documentation/reference/stable/configuration/signalling.html
"""

from __future__ import annotations

import re
from collections.abc import Callable
from decimal import Decimal
from typing import Any

from signals import exact_json
from signals.chosen import ChosenProblem, chosen_rows
from signals.condition import condition_problem
from signals.records import (
    AdditionalCondition,
    InvalidSignal,
    Signal,
    SignalRecord,
    is_blank,
)
from signals.regex import MAX_CHARACTERS, named, signal_matcher
from signals.select_statement import condition_of

Data = dict[str, Any]

#: Most characters of `data` as text: what a Kafka message holds by default.
MAX_DATA = 1 << 20
#: Most characters of an id, which each notification of the snapshot repeats. Debezium's signal table has room for 42.
MAX_ID = 255
#: Most characters of a filter. Debezium's signal table has room for 2,048 for all of the data.
MAX_FILTER = 10_000
#: Most data collections, or additional conditions, of one signal.
MAX_LISTED = 10_000
#: Most regular expressions of one signal, and most characters of all of them. Plain names do not count. The stream
#: waits while they are compiled: 4 µs for each character, at worst 20 µs.
MAX_EXPRESSIONS = 1_000
MAX_OF_EXPRESSIONS = 50_000
#: The limits that a throttle signal may set, each with its greatest value in rows, threads or milliseconds (a day).
THROTTLE_LIMITS = {
    "rows-per-second": 1_000_000_000,
    "replica-lag-ms": 86_400_000,
    "commit-latency-ms": 86_400_000,
    "threads-running": 1_000_000,
    "stream-lag-ms": 86_400_000,
}
#: All limits of incsnap-throttle. Rows of a chunk have a setting of Debezium's name, incremental.snapshot.chunk.size.
SIGNALLED_LIMITS = {**THROTTLE_LIMITS, "chunk-rows": 10_000_000}
#: Most characters of a column's name in MySQL.
_MAX_COLUMN = 64
#: The beginning of a blocking snapshot's filter. In Debezium that filter is a whole statement.
_SELECT = re.compile(r"SELECT\b", re.I)

#: A GTID set, also with several intervals and with tags. Debezium takes one interval of each server.
_GTID_SET = re.compile(r"\s*[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}(\s*[:,]\s*[0-9a-z_-]+)+\s*", re.I)
_BINLOG_FILE = re.compile(r"[^/\\\s]+\.\d{6,}")

_EXAMPLE = '{"type": "incremental", "data-collections": ["db.table"]}'
_MAX_SHOWN = 80
_MAX_REASON = 400


class _BadError(Exception):
    """An error in a record: the reason, and what would be right."""

    def __init__(self, reason: str, hint: str) -> None:
        super().__init__(reason, hint)
        self.reason, self.hint = reason, hint


def parse(record: SignalRecord) -> Signal | InvalidSignal:
    """Return the signal in `record`, or an InvalidSignal.

    A record without an id gets an id from its channel and position, which is the same after a restart.
    """
    name = record.id.strip() if isinstance(record.id, str) else ""
    name = name or f"{record.channel}-{record.position}"
    try:
        if record.problem is not None:
            raise _BadError(record.problem, "Write id, type and data as strings; data holds a JSON object.")
        if len(name) > MAX_ID or not _is_text(name):
            raise _BadError(
                f"its id is longer than {MAX_ID} characters, or no text", "Write a short id, such as a UUID."
            )
        kind = record.type.strip() if isinstance(record.type, str) else ""
        if kind in _WATERMARKS:
            return InvalidSignal(name, f"{kind} is a watermark of another connector", "Nothing is to be done.", True)
        if kind in _NOT_HERE:
            raise _BadError(f"{kind} is not supported", _NOT_HERE[kind])
        make = _KINDS.get(kind)
        if make is None:
            known = ", ".join(_KINDS)
            raise _BadError(f"the type {_short(record.type)} is unknown", f"Known types are {known}.")
        return make(name, _data(record.data))
    except _BadError as error:
        return InvalidSignal(_plain(name), _plain(error.reason), error.hint)
    except (RecursionError, MemoryError) as error:  # an object that is nested too deeply to be printed
        return InvalidSignal(_plain(name), f"data cannot be read: {type(error).__name__}", f"Write data as {_EXAMPLE}.")


def _data(raw: object) -> Data:
    """Return the `data` of a signal as a dict. Raise _BadError if it is not a JSON object."""
    if raw is None or (isinstance(raw, str) and not raw.strip()):
        return {}
    if isinstance(raw, str) and len(raw) > MAX_DATA:
        raise _BadError(f"data has {len(raw)} characters, and {MAX_DATA} are the most", "Send several signals.")
    value = raw
    if isinstance(raw, str):
        try:
            value = exact_json.parsed(raw)
        except (ValueError, RecursionError) as error:
            raise _BadError(
                f"data is not JSON: {_short(raw)} ({_short(error)})", f"Write data as {_EXAMPLE}."
            ) from None
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise _BadError(f"data is not a JSON object: {_short(raw)}", f"Write data as {_EXAMPLE}.")
    return value


def _execute(name: str, data: Data) -> Signal:
    """Return an execute-snapshot signal. Raise _BadError for wrong data."""
    blocking = _is_blocking(data)
    if not is_blank(data.get("additional-condition")):
        raise _BadError(
            "additional-condition is no longer used",
            'Write "additional-conditions": [{"data-collection": "db.table", "filter": "..."}].',
        )
    collections = _collections(data)
    if not collections:
        raise _BadError("data-collections is missing or empty", f"Write data as {_EXAMPLE}.")
    surrogate = None if is_blank(data.get("surrogate-key")) else data["surrogate-key"]
    named = isinstance(surrogate, str) and len(surrogate.strip()) <= _MAX_COLUMN and _is_text(surrogate)
    if surrogate is not None and not named:
        raise _BadError(
            f"surrogate-key {_short(surrogate)} is not a column's name", "Name one column, or leave it out."
        )
    conditions = _conditions(data, blocking=blocking)
    surrogate_key = surrogate.strip() if surrogate is not None else None
    try:
        chosen = chosen_rows(data)
    except ChosenProblem as problem:
        raise _BadError(problem.reason, problem.hint) from None
    return Signal(name, "execute-snapshot", collections, conditions, surrogate_key, blocking, chosen)


def _stop(name: str, data: Data) -> Signal:
    """Return a stop-snapshot signal. Raise _BadError for wrong data."""
    _is_blocking(data)  # blocking snapshots are stopped too
    return Signal(name, "stop-snapshot", _collections(data))


def _throttle(name: str, data: Data) -> Signal:
    """Return an incsnap-throttle signal. Raise _BadError for wrong data."""
    hint = 'Write data as {"rows-per-second": 5000}; 0 lifts a limit, null leaves it to the settings.'
    for limit in data:
        if limit not in SIGNALLED_LIMITS:
            raise _BadError(f"{_short(limit)} is not one of: {', '.join(SIGNALLED_LIMITS)}", hint)
    if not data:
        raise _BadError("no limit is named", hint)
    for limit, most in data.items():
        greatest = SIGNALLED_LIMITS[limit]
        if most is not None and (type(most) is not int or not 0 <= most <= greatest):
            raise _BadError(f"{limit} is not a whole number from 0 to {greatest}: {_short(most)}", hint)
    return Signal(name, "incsnap-throttle", limits=tuple(data.items()))


def _log(name: str, data: Data) -> Signal:
    """Return a log signal. Raise _BadError without a message."""
    message = data.get("message")
    if not isinstance(message, str) or not message or not _is_text(message):
        raise _BadError("message is missing", 'Write data as {"message": "text, {} becomes the offset"}.')
    return Signal(name, "log", message=message)


def _set_binlog_position(name: str, data: Data) -> Signal:
    """Return a set-binlog-position signal. Raise _BadError for wrong data."""
    hint = 'Write data as {"gtid_set": "uuid:1-100"}, or {"binlog_filename": "binlog.000003", "binlog_position": 157}.'
    gtids, file, position = (data.get(key) for key in ("gtid_set", "binlog_filename", "binlog_position"))
    if gtids and (file or position is not None):
        raise _BadError("it has a GTID set and a file or position", hint)
    if gtids:
        if not isinstance(gtids, str) or not _GTID_SET.fullmatch(gtids):
            raise _BadError(f"gtid_set {_short(gtids)} is not a GTID set", hint)
        return Signal(name, "set-binlog-position", gtid_set="".join(gtids.split()))
    if not isinstance(file, str) or not _BINLOG_FILE.fullmatch(file):
        raise _BadError(f"binlog_filename {_short(file)} is not a binlog file", hint)
    if type(position) is not int or position < 0:
        raise _BadError(f"binlog_position {_short(position)} is not a position", hint)
    return Signal(name, "set-binlog-position", binlog=(file, position))


def _is_blocking(data: Data) -> bool:
    """Return True for the type `blocking`. Raise _BadError for an unknown type."""
    kind = "incremental" if data.get("type") is None else data["type"]
    if isinstance(kind, str) and kind.strip().lower() in ("incremental", "blocking"):
        return kind.strip().lower() == "blocking"
    raise _BadError(f"the snapshot type {_short(kind)} is unknown", 'Use "type": "incremental".')


def _collections(data: Data) -> tuple[str, ...]:
    """Return `data-collections`, checked. Raise _BadError if they are wrong."""
    collections = data.get("data-collections")
    if collections is None:
        return ()
    if not isinstance(collections, list) or not all(isinstance(item, str) and item.strip() for item in collections):
        raise _BadError(
            f"data-collections is not a list of strings: {_short(collections)}",
            'Write "data-collections": ["db.table"].',
        )
    _bounded(collections, "data-collections")
    patterns = [item.strip() for item in collections]
    _few_expressions(patterns, "data-collections")
    return tuple(_checked(pattern, "data-collections") for pattern in patterns)


def _conditions(data: Data, *, blocking: bool) -> tuple[AdditionalCondition, ...]:
    """Return `additional-conditions`, checked. Raise _BadError if they are wrong."""
    listed = data.get("additional-conditions")
    form = 'Write "additional-conditions": [{"data-collection": "db.table", "filter": "color = \'blue\'"}].'
    if listed is None:
        return ()
    if not isinstance(listed, list):
        raise _BadError(f"additional-conditions is not a list: {_short(listed)}", form)
    _bounded(listed, "additional-conditions")
    named = [item.get("data-collection") for item in listed if isinstance(item, dict)]
    _few_expressions([each.strip() for each in named if isinstance(each, str)], "additional-conditions")
    conditions = []
    for item in listed:
        if not isinstance(item, dict):
            raise _BadError(f"additional-conditions holds {_short(item)}, not an object", form)
        table, sql = item.get("data-collection"), item.get("filter")
        if not isinstance(table, str) or not table.strip():
            raise _BadError("an additional condition has no data-collection", form)
        if not isinstance(sql, str):
            raise _BadError(f"the additional condition of {_short(table)} has no filter", form)
        pattern, sql = _checked(table.strip(), "data-collection"), sql.strip()
        if blocking and _SELECT.match(sql):
            sql = _narrowed(pattern, sql)
        # A blank filter means all rows. It keeps later conditions from these tables.
        conditions.append(AdditionalCondition(pattern, sql and _filter(table, sql)))
    return tuple(conditions)


def _narrowed(pattern: str, statement: str) -> str:
    """Return the condition of a SELECT statement, which Debezium expects for a blocking snapshot. "" means all rows.

    Raise _BadError if the statement does more than select rows by a condition.
    """
    database, _, table = (named(pattern) or "").partition(".")
    condition, problem = condition_of(statement, database, table) if table else ("", "it is for more than one table")
    if problem:
        raise _BadError(
            f"the statement for {_short(pattern)} cannot be taken over: {problem}",
            "Write one SQL condition, as after WHERE, or SELECT * FROM db.table WHERE <condition>.",
        )
    return condition


def _filter(table: str, sql: str) -> str:
    """Return the filter `sql`, checked. Raise _BadError if it is not one condition."""
    problem = condition_problem(sql)
    if len(sql) > MAX_FILTER:
        problem = f"it has {len(sql)} characters, and {MAX_FILTER} are the most"
    elif not _is_text(sql):
        problem = "it holds half a character (a lone surrogate)"
    if problem:
        raise _BadError(
            f"the filter of {_short(table)} is not a condition: {problem}",
            "Write one SQL condition, as after WHERE.",
        )
    return sql


def _bounded(listed: list[Any], where: str) -> None:
    """Raise _BadError if the list has too many entries."""
    if len(listed) > MAX_LISTED:
        raise _BadError(
            f"{where} has {len(listed)} entries, and {MAX_LISTED} are the most",
            "Write expressions in place of names, or send several signals.",
        )


def _few_expressions(patterns: list[str], where: str) -> None:
    """Raise _BadError if the list has so many expressions that the stream would wait for their compilation."""
    sizes = [len(pattern) for pattern in patterns if named(pattern) is None]
    if len(sizes) > MAX_EXPRESSIONS or sum(sizes) > MAX_OF_EXPRESSIONS:
        raise _BadError(
            f"{where} has {len(sizes)} expressions with {sum(sizes)} characters; {MAX_EXPRESSIONS} with"
            f" {MAX_OF_EXPRESSIONS} are the most",
            "Write names (db.table) in place of expressions, or send several signals.",
        )


def _checked(pattern: str, where: str) -> str:
    """Return `pattern`. Raise _BadError if it is not an expression that we understand."""
    if len(pattern) <= MAX_CHARACTERS and named(pattern):
        return pattern
    try:
        signal_matcher(pattern)
    except re.error as error:
        raise _BadError(
            f"{where} holds {_short(pattern)}, not a regular expression: {error}", "Write db.table, or a Java regex."
        ) from None
    return pattern


def _is_text(text: str) -> bool:
    """Return False if `text` has a lone surrogate (`\\ud800`).

    JSON allows that, but Kafka and MySQL cannot store it.
    """
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _plain(text: str) -> str:
    """Return `text`, cut to 400 characters, with lone surrogates escaped."""
    return text[:_MAX_REASON].encode(errors="backslashreplace").decode()


def _short(value: object) -> str:
    """Return `value` as a text of at most 80 characters."""
    text = str(value) if isinstance(value, Exception | Decimal) else repr(value)
    return text if len(text) <= _MAX_SHOWN else text[: _MAX_SHOWN - 1] + "…"


_KINDS: dict[str, Callable[[str, Data], Signal]] = {
    "execute-snapshot": _execute,
    "stop-snapshot": _stop,
    "pause-snapshot": lambda name, data: Signal(name, "pause-snapshot"),
    "resume-snapshot": lambda name, data: Signal(name, "resume-snapshot"),
    "incsnap-throttle": _throttle,
    "log": _log,
    "set-binlog-position": _set_binlog_position,
}
_WATERMARKS = frozenset({"snapshot-window-open", "snapshot-window-close"})
_NOT_HERE = {
    "schema-changes": "Schemas are read from the binlog and the catalog; nothing needs to be told.",
}
