"""Rules for the variables of the MySQL server, each with the statement that corrects the variable."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class Finding:
    """A problem found by preflight, with its repair."""

    name: str  #: the variable, setting or subject
    problem: str  #: what is wrong, in one line
    repair: str  #: SQL statement or setting that corrects the problem
    severity: Literal["error", "warning"] = "error"  #: an error stops the start
    waits: bool = False  #: the server does not answer, so a start waits for it

    def __str__(self) -> str:
        return f"{self.name}: {self.problem} → {self.repair}"


@dataclass(frozen=True, slots=True)
class _Rule:
    """A value that a variable must have."""

    variable: str  #: name of a variable of the MySQL server
    required: str  #: in capitals
    why: str  #: what goes wrong otherwise
    repair: str = ""  #: how to set the variable; "": by SET PERSIST
    severity: Literal["error", "warning"] = "error"  #: of the finding


def _persist(variable: str, value: str) -> str:
    return f"SET PERSIST {variable} = {value};"


#: The server accepts only one step of gtid_mode at a time.
_GTIDS = " ".join(
    (
        _persist("enforce_gtid_consistency", "ON"),
        *(_persist("gtid_mode", mode) for mode in ("OFF_PERMISSIVE", "ON_PERMISSIVE", "ON")),
    )
)
_RULES = (
    _Rule("log_bin", "ON", "there is no binlog to read", "Start mysqld with --log-bin and without --skip-log-bin"),
    _Rule("binlog_format", "ROW", "statements do not tell which rows they change"),
    _Rule("binlog_row_image", "FULL", "events without all columns cannot become whole records"),
    _Rule(
        "binlog_row_metadata",
        "FULL",
        "rows do not name their columns, so the job stops at rows of a table whose statements it could not follow",
        severity="warning",
    ),
    _Rule("gtid_mode", "ON", "the watermarks are GTIDs", _GTIDS),
    _Rule("enforce_gtid_consistency", "ON", "the watermarks are GTIDs", _GTIDS),
    _Rule("binlog_order_commits", "ON", "transactions could become visible in another order than they are sent"),
)


def variable_findings(variables: Mapping[str, str]) -> list[Finding]:
    """Return findings for `variables` (SHOW GLOBAL VARIABLES). Skip variables that this MySQL version does not have."""
    findings = []
    for rule in _RULES:
        value = variables.get(rule.variable)
        if value is not None and value.upper() != rule.required:
            must = "must" if rule.severity == "error" else "should"
            problem = f"it is {value or 'empty'!r} and {must} be {rule.required!r}: {rule.why}"
            repair = rule.repair or _persist(rule.variable, "ON" if rule.required == "ON" else repr(rule.required))
            findings.append(Finding(rule.variable, problem, repair, rule.severity))
    return findings


def query_findings(variables: Mapping[str, str]) -> list[Finding]:
    """Return findings for the setting include.query.

    They are warnings, because a session may still log its statements.
    """
    name = "binlog_rows_query_log_events"
    if variables.get(name, "ON") == "ON":
        return []
    problem = "include.query is true, but it is OFF: source.query stays null for sessions that do not set it"
    return [Finding(name, problem, _persist(name, "ON"), "warning")]


def replica_findings(variables: Mapping[str, str]) -> list[Finding]:
    """Return findings for a server that is itself a replica."""
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
    """Return the value of a variable that older versions call `old_name`."""
    return variables.get(name, variables.get(old_name))
