"""The answers of `incsnap verify` for tables: counts, keys that differ, and the words for a person."""

from __future__ import annotations

import base64
import json
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from incsnap.config import job_file
from incsnap.config.job_file import StrPath
from incsnap.errors import ConfigError
from incsnap.tables import TableId
from incsnap.verify.kinds import ABSENT, DIFFERENCES, KINDS, OF_HISTORY, UNVERIFIABLE
from signals import exact_json

EQUAL, DIFFERENT, NO_ANSWER = 0, 1, 2  #: exit codes
#: Why a job is not asked for a key that another producer, or an earlier form of the table, has left.
_ODD = "no row of the table can have such a key, so a job refuses it"
#: Writes the lines of `Difference`, with all characters as they are. It refuses NaN, which JSON does not have.
_LINE = json.JSONEncoder(ensure_ascii=False, allow_nan=False)


@dataclass(frozen=True, slots=True)
class Difference:
    """A key that differs, or about which nothing is proved."""

    key: bytes  #: the record's key, without a schema
    kind: str  #: one of `kinds.KINDS`
    columns: tuple[str, ...] = ()  #: fields with other values, for `wrong` and `stale`
    note: str = ""  #: the evidence, or why nothing is proved

    def line(self) -> str:
        """Return the difference as a line of JSON.

        Another producer may have written a key that is no JSON. A line shows it as `key_text`, or in base64 as
        `key_base64` if it is no UTF-8.
        """
        others = {"kind": self.kind, "columns": list(self.columns), "note": self.note}
        shown = {name: value for name, value in others.items() if value}
        try:
            text = self.key.decode()
        except UnicodeDecodeError:
            return exact_json.written({"key_base64": base64.b64encode(self.key).decode(), **shown}, _LINE)
        try:
            return exact_json.written({"key": exact_json.parsed(text), **shown}, _LINE)
        except ValueError:
            return exact_json.written({"key_text": text, **shown}, _LINE)


@dataclass(slots=True)
class TableReport:
    """The answer for one table."""

    table: str  #: name, as db.table
    topic: str  #: topic of its records; "" if the table has none
    rows: int = 0  #: rows that were compared
    gtid_set: str = ""  #: the transactions that the comparison has seen; a key that changed later was read again
    refused: str = ""  #: why the table was not compared; "" if it was
    differences: list[Difference] = field(default_factory=list)  #: keys that are not proved to be equal
    sent_twice: int = 0  #: records that repeat an earlier one of their key
    back_in_time: int = 0  #: records that are older than an earlier one of their key
    history: list[Difference] = field(default_factory=list)  #: keys of such records, if they are asked for
    beside: tuple[str, ...] = ()  #: other tables of the topic; `rows`, `sent_twice` and `back_in_time` include theirs
    unrepairable: str = ""  #: why a job cannot read rows again by their keys; "" if it can
    undeletable: str = ""  #: why a job cannot send deletions of keys; "" if it can
    #: keys among `differences` that no row of the table can have: a job refuses a list with one of them
    odd: Collection[bytes] = frozenset()
    repaired: int | None = None  #: keys that a job has sent again and that are equal now; None: nothing was sent

    @property
    def counts(self) -> dict[str, int]:
        """Return the number of keys or records of each kind."""
        counts = Counter(each.kind for each in self.differences)
        return {kind: counts[kind] for kind in KINDS} | {
            "sent_twice": self.sent_twice,
            "back_in_time": self.back_in_time,
        }

    @property
    def differs(self) -> bool:
        """Whether a difference was proved."""
        return any(self.counts[kind] for kind in DIFFERENCES)

    @property
    def is_equal(self) -> bool:
        """Whether every key was compared and none differs."""
        return not (self.refused or self.differs or self.counts[UNVERIFIABLE])

    def obstacle(self, difference: Difference) -> str:
        """Return why no job can send the key of a proved difference again; "" if a job can."""
        why = self.unrepairable or (self.undeletable if difference.kind in ABSENT else "")
        return why or (_ODD if difference.key in self.odd else "")

    def obstacles(self) -> list[str]:
        """Return the obstacle of each proved difference, "" where there is none."""
        return [self.obstacle(each) for each in self.differences if each.kind in DIFFERENCES]

    def to_json(self) -> dict[str, Any]:
        """Return the object that `--json` prints."""
        shown: dict[str, Any] = {"table": self.table, "gtid_set": self.gtid_set, "equal": self.is_equal, **self.counts}
        if self.repaired is not None:
            shown["repaired"] = self.repaired
        return {**shown, "refused": self.refused} if self.refused else shown

    def lines(self) -> list[str]:
        """Return the answer for a person."""
        if self.refused:
            return [f"{self.table}: no answer. {self.refused}"]
        if self.is_equal:
            lines = [f"{self.table}: equal. {self.rows:,} rows are in {self.topic} as the table has them."]
        else:
            counted = ", ".join(f"{count:,} {kind}" for kind, count in self.counts.items() if count)
            lines = [f"{self.table}: {counted}, of {self.rows:,} rows."]
        if self.beside:
            lines.append(f"  The numbers of rows and of records include {', '.join(self.beside)}, in the same topic.")
        if self.repaired is not None:
            lines.append(f"  {self.repaired:,} keys were sent again, and are as the table has them.")
        shown = [f"{self.counts[kind]:,} {kind}" for kind in OF_HISTORY if self.counts[kind]]
        if shown and self.is_equal:
            lines.append(f"  In the topic: {', '.join(shown)}. The last record of each key is right.")
        for each in self.differences[:5]:
            columns = f" in {', '.join(each.columns)}" if each.columns else ""
            note = f" ({each.note})" if each.note else ""
            lines.append(f"  {each.kind}{columns}: {each.key.decode(errors='replace')}{note}")
        if len(self.differences) > 5:
            lines.append(f"  and {len(self.differences) - 5:,} more")
        return lines


def require_tables(reports: Sequence[TableReport], signal_table: TableId | None) -> None:
    """Raise ConfigError if `reports` name no table but `signal_table`: an empty answer looks like "equal"."""
    if not any(each.table != str(signal_table) for each in reports):
        raise ConfigError(
            "Nothing was compared: there is no captured table that the user may see",
            "Correct database.include.list and table.include.list, or GRANT SELECT on the tables. `incsnap check` names"
            " the patterns that match no table. Tables of tools for online DDL count only if --table names them.",
        )


def exit_code(reports: Sequence[TableReport], *, strict: bool, allow_unverifiable: bool) -> int:
    """Return the exit code: 0 all equal, 1 differences, 2 no answer about a table or a key.

    `strict`: what is wrong with the history alone counts too. `allow_unverifiable`: keys about which nothing is proved
    do not count.
    """
    if any(each.differs or (strict and (each.sent_twice or each.back_in_time)) for each in reports):
        return DIFFERENT
    if any(each.refused or (each.counts[UNVERIFIABLE] and not allow_unverifiable) for each in reports):
        return NO_ANSWER
    return EQUAL


def command_line(file: StrPath, worker: str | None, tables: Sequence[str] = (), sample: str | None = None) -> str:
    """Return the command line of `incsnap verify` with these options, as a shell reads it.

    >>> command_line("a.properties", "worker.properties", ["d.t"])
    'incsnap verify a.properties --worker worker.properties --table d.t'
    """
    options = [part for table in tables for part in ("--table", table)]
    return job_file.command_line("verify", file, worker, *options, *(("--sample", sample) if sample else ()))


def next_command(
    reports: Sequence[TableReport], file: StrPath, code: int, worker: str | None = None, sample: str | None = None
) -> str:
    """Return the line that says what to type next, or why no job can repair anything; "" if no command helps.

    The repair compares whole tables, whatever the sample was. A refused table stays refused.
    """
    obstacles = {each.table: each.obstacles() for each in reports}
    repairable = [table for table, of_keys in obstacles.items() if "" in of_keys]
    if repairable:
        command = command_line(file, worker, repairable)
        return f"Next: {command} --repair   (asks first, and needs a live job of incsnap)"
    for table, of_keys in obstacles.items():
        if of_keys:
            return f"No job can send these keys of {table} again: {of_keys[0]}"
    unproved = [each.table for each in reports if each.counts[UNVERIFIABLE]]
    if unproved and code == NO_ANSWER:
        return f"Next: {command_line(file, worker, unproved, sample)}   (once the topics have caught up)"
    return ""


def keys_file(folder: str, table: str) -> Path:
    """Return the file with the keys of `table` that differ, for a signal that reads these rows again."""
    return Path(folder).absolute() / f"{table}.keys.jsonl"


def write_differences(reports: Sequence[TableReport], folder: Path) -> None:
    """Write the keys of each table into `<folder>/<table>.jsonl`, one JSON object a line.

    Keys that were proved to differ stand alone in `keys_file`, as `incsnap-keys-file` of a signal reads them: without
    the odd ones.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for each in reports:
        # UTF-8 has no half of a surrogate pair. A key may have one, as an escape.
        with (folder / f"{each.table}.jsonl").open("w", encoding="utf-8", errors="backslashreplace") as file:
            file.writelines(f"{difference.line()}\n" for difference in (*each.differences, *each.history))
        proved = [
            difference.key.decode()
            for difference in each.differences
            if difference.kind in DIFFERENCES and difference.key not in each.odd
        ]
        keys_file(str(folder), each.table).write_text("".join(f"{key}\n" for key in proved))
