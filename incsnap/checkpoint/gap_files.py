"""Files of a job that closes a gap (`incsnap.gap.recovery=differences`), beside the checkpoint.

    gap/<job>/open.json            the transactions that the job has begun behind
    gap/<job>/answer-<n>.json      an answer about some tables: which keys or whole tables are sent again
    gap/<job>/keys-<n>-<m>.json    keys of an answer, as a JSON list

The driver compares and writes. A file never changes, and an answer is written behind its keys. The planner takes the
answers in their order, and the position of the channel `gap` in the offset says how many it has taken. So an answer is
obeyed in exactly one batch. A comparison that was cut short begins again with the tables that no answer names.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from incsnap.checkpoint.files import Files
from incsnap.checkpoint.windows import CheckpointDamaged
from incsnap.gtid import GtidSet

_FOLDER = "gap"
#: Begins the name of a file of keys beside the checkpoint, where a signal names a file of its own.
BESIDE = "checkpoint:"


@dataclass(frozen=True, slots=True)
class TableAnswer:
    """A part of a table that is sent again: keys, or all rows."""

    table: str  #: name as in SQL, which `TableId.parse` reads
    keys: str = ""  #: file with keys, which are deleted if the table does not have them; "" for none
    count: int = 0  #: how many keys the file has
    whole: bool = False  #: the table is read by a snapshot
    reason: str = ""  #: why the table cannot be compared; "" if it was


@dataclass(frozen=True, slots=True)
class GapAnswer:
    """An answer about some tables."""

    tables: tuple[TableAnswer, ...]  #: tables of which something is sent again
    named: tuple[str, ...]  #: all tables that the answer is about, also those that hold what the topics hold
    is_last: bool  #: whether no table is left


class GapFiles:
    """The files of the gap of one job. `files` is incsnap's part of the checkpoint, `job` is the id of the job."""

    def __init__(self, files: Files, job: str) -> None:
        self._files, self._folder = files, f"{_FOLDER}/{job}"

    def open(self, behind: GtidSet) -> None:
        """Note that the job begins behind the transactions `behind`, and has a gap to close."""
        self._files.write_json(f"{self._folder}/open.json", {"behind": str(behind)}, durable=True)

    def forget(self) -> None:
        """Delete the files. The job has ended."""
        self._files.delete_folder(self._folder)

    def behind(self) -> GtidSet | None:
        """Return the transactions that the job has begun behind; None if it has no gap to close."""
        content = self._read("open.json")
        return None if content is None else GtidSet.parse(content["behind"])

    def is_open(self) -> bool:
        """Return True if the job has a gap to close, and tables that no answer names."""
        if self.behind() is None:
            return False
        answers = self.answers()
        return not (answers and answers[-1].is_last)

    def write_keys(self, number: int, part: str, keys: Sequence[bytes]) -> str:
        """Write keys of answer `number`, each the JSON of a record's key, and return the name of the file."""
        name = f"{self._folder}/keys-{number}-{part}.json"
        self._files.write(name, b"[" + b",".join(keys) + b"]", durable=True)
        return name

    def write_answer(self, number: int, answer: GapAnswer) -> None:
        """Write answer `number`. Answers are numbered from 1."""
        self._files.write_json(f"{self._folder}/answer-{number}.json", asdict(answer), durable=True)

    def answer(self, number: int) -> GapAnswer | None:
        """Return answer `number`; None if it is not written yet."""
        content = self._read(f"answer-{number}.json")
        if content is None:
            return None
        tables = tuple(TableAnswer(**each) for each in content["tables"])
        return GapAnswer(tables, tuple(content["named"]), content["is_last"])

    def answers(self) -> list[GapAnswer]:
        """Return the answers that are written."""
        written: list[GapAnswer] = []
        while (answer := self.answer(len(written) + 1)) is not None:
            written.append(answer)
        return written

    def _read(self, name: str) -> Any:
        try:
            return self._files.read_json(f"{self._folder}/{name}")
        except ValueError:
            raise CheckpointDamaged(f"{self._files.path(self._folder)}/{name} is torn") from None


def keys_beside(files: Files, name: str) -> bytes | None:
    """Return the JSON list of keys that `name` means; None if `name` is no file of an answer.

    Raise CheckpointDamaged if the file is gone.
    """
    if not name.startswith(f"{BESIDE}{_FOLDER}/"):
        return None
    content = files.read(name.removeprefix(BESIDE))
    if content is None:
        raise CheckpointDamaged(f"{files.path(name.removeprefix(BESIDE))}, a list of keys that differ, is gone")
    return bytes(content.to_pybytes())
