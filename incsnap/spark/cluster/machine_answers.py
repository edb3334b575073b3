"""The findings about a cluster's machines, from the executors' answers or from Spark's error."""

from __future__ import annotations

import re
from collections.abc import Sequence

from incsnap.checkpoint.files import Files
from incsnap.errors import shorten
from incsnap.mysql.server_rules import Finding
from incsnap.version import __version__

_PLACE = re.compile(r"\(TID \d+\) \((\S+) executor (\S+?)\)")
_NO_PROGRAM = re.compile(r'Cannot run program "([^"]+)"')
_NO_MODULE = re.compile(r"No module named '([^']+)'")
_OTHER_PYTHON = re.compile(r"different version: (\S+) than that in driver: (\S+?)[,\s]")
_INSTALL = (
    "Install the driver's incsnap in the same place on each machine, or send it along: `incsnap package FOLDER`, then"
    " spark.archives=FOLDER/incsnap.tar.gz#incsnap"
)

#: An executor's answer: (place, version, unreadable, read, written).
#:
#: `place`: where the executor runs. `version`: of its incsnap, or why it has none. `unreadable`: (setting, reason) of
#: each file that it cannot read. `read`: whether it has read the driver's token. `written`: the name of the file that
#: it has written, or why it could not.
Answer = tuple[str, str, list[tuple[str, str]], bool, str]


def findings_of(answers: Sequence[Answer], checkpoint_location: str, files: Files) -> list[Finding]:
    """Return what each executor lacks. `files`: the job's folder in the checkpoint, as the driver sees it."""
    findings: list[Finding] = []
    for place, version, unreadable, read, written in sorted(answers):
        if version != __version__:
            problem = f"{place} has {version}, but the driver has incsnap {__version__}"
            findings.append(Finding("workers' Python", problem, _INSTALL))
            continue
        findings += [
            Finding(
                setting,
                f"{place} cannot read {reason}",
                "Put the file there on each machine. Or name the file without a folder, send it along"
                " (spark.files=/path/to/it) and start the job in the file's folder",
            )
            for setting, reason in unreadable
        ]
        # A file of another machine is visible at once in the same store, and never on another disk.
        if not read or not files.exists(written):
            why = written if written.startswith("cannot") else "it does not see what the driver writes there"
            findings.append(
                Finding(
                    "checkpoint.location",
                    f"{place} does not share {checkpoint_location} with the driver: {why}",
                    "Put the checkpoint on a file system that all machines see under this name (NFS, s3a:, hdfs:,"
                    " ...). Let the user that executors run as write there",
                )
            )
    return findings


def task_failure(text: str) -> Finding:
    """Return why an executor could not start a task, from the text of Spark's error."""
    place = _PLACE.search(text)
    where = f"executor {place[2]} on {place[1]}" if place else "an executor"
    if program := _NO_PROGRAM.search(text):
        return Finding("workers' Python", f"{where} has no program {program[1]}", _INSTALL)
    if module := _NO_MODULE.search(text):
        return Finding("workers' Python", f"{where} has no Python module {module[1]}", _INSTALL)
    if versions := _OTHER_PYTHON.search(text):
        problem = f"{where} runs Python {versions[1].strip('()')}, the driver {versions[2].strip('()')}"
        return Finding("workers' Python", problem, f"Use the same minor version of Python for both. {_INSTALL}")
    lines = [line for line in text.splitlines() if line.strip() and not line.lstrip().startswith("at ")]
    return Finding("executors", f"{where} cannot run a task: {shorten(lines[0] if lines else text, 300)}", _INSTALL)
