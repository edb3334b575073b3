"""What the server's variables must say before a job can run, each with the statement that makes it so."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is not as it must be, in one line, and the SQL or setting that repairs it."""

    name: str
    problem: str
    repair: str
    severity: Literal["error", "warning"] = "error"

    def __str__(self) -> str:
        return f"{self.name}: {self.problem} → {self.repair}"


@dataclass(frozen=True, slots=True)
class _Rule:
    variable: str
    required: str
    why: str
    repair: str
    severity: Literal["error", "warning"] = "error"


def _persist(variable: str, value: str) -> str:
    return f"SET PERSIST {variable} = {value};"


#: The server takes one step at a time.
_GTIDS = " ".join(
    (
        _persist("enforce_gtid_consistency", "ON"),
        *(_persist("gtid_mode", mode) for mode in ("OFF_PERMISSIVE", "ON_PERMISSIVE", "ON")),
    )
)
_RULES = (
    _Rule("log_bin", "ON", "there is no binlog to read", "Start mysqld with --log-bin and without --skip-log-bin"),
    _Rule("binlog_format", "ROW", "statements do not tell which rows they change", _persist("binlog_format", "'ROW'")),
    _Rule(
        "binlog_row_image",
        "FULL",
        "events without all columns cannot become whole records",
        _persist("binlog_row_image", "'FULL'"),
    ),
    _Rule(
        "binlog_row_metadata",
        "FULL",
        "rows do not name their columns, so the job stops at rows of a table whose statements it could not follow",
        _persist("binlog_row_metadata", "'FULL'"),
        "warning",
    ),
    _Rule("gtid_mode", "ON", "the watermarks are GTIDs", _GTIDS),
    _Rule("enforce_gtid_consistency", "ON", "the watermarks are GTIDs", _GTIDS),
    _Rule(
        "binlog_order_commits",
        "ON",
        "transactions could become visible in another order than they are sent",
        _persist("binlog_order_commits", "ON"),
    ),
)


def variable_findings(variables: Mapping[str, str]) -> list[Finding]:
    """``variables``: of SHOW GLOBAL VARIABLES. A variable this version does not have is not asked for."""
    findings = []
    for rule in _RULES:
        value = variables.get(rule.variable)
        if value is not None and value.upper() != rule.required:
            must = "must" if rule.severity == "error" else "should"
            problem = f"it is {value or 'empty'!r} and {must} be {rule.required or 'empty'!r}: {rule.why}"
            findings.append(Finding(rule.variable, problem, rule.repair, rule.severity))
    return findings


def query_findings(variables: Mapping[str, str]) -> list[Finding]:
    """For include.query. A session may still log its statements, so it is no error."""
    name = "binlog_rows_query_log_events"
    if variables.get(name, "ON") == "ON":
        return []
    problem = "include.query is true, but it is OFF: source.query stays null for sessions that do not set it"
    return [Finding(name, problem, _persist(name, "ON"), "warning")]


def replica_findings(variables: Mapping[str, str]) -> list[Finding]:
    """For a server that is itself a replica."""
    findings = []
    if _either(variables, "log_replica_updates", "log_slave_updates") == "OFF":
        problem = "this server is a replica and does not log what it replicates"
        findings.append(Finding("log_replica_updates", problem, "Start mysqld with --log-replica-updates=ON"))
    workers = _either(variables, "replica_parallel_workers", "slave_parallel_workers") or "0"
    order = "replica_preserve_commit_order"
    if int(workers) > 1 and _either(variables, order, "slave_preserve_commit_order") == "OFF":
        problem = f"this server is a replica with {workers} workers that commit in any order"
        repair = f"STOP REPLICA SQL_THREAD; SET PERSIST {order} = ON; START REPLICA SQL_THREAD;"
        findings.append(Finding(order, problem, repair))
    return findings


def _either(variables: Mapping[str, str], name: str, old_name: str) -> str | None:
    return variables.get(name, variables.get(old_name))
