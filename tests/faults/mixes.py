"""The table of mixes of two starts of one `topic.prefix`, and the rule for each mix (ADR 0018).

Each kind of checkpoint meets each state of the first job, in a folder and in a bucket. Server id, buckets and
`--replace-job` have opposite values in the two halves. So each value meets each value of every other factor.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto


class Storage(Enum):
    """The place of both checkpoints."""

    FOLDER = auto()
    BUCKET = auto()


class Checkpoint(Enum):
    """The checkpoint that the second start gets."""

    #: The first job's checkpoint.
    SAME = auto()
    #: A copy made right before the second start.
    COPIED = auto()
    #: A copy made before the first job delivered more.
    OLDER = auto()
    #: An empty checkpoint.
    NEW = auto()


class First(Enum):
    """The state of the first job when the second start looks for it."""

    RUNNING = auto()
    #: Frozen a moment ago. It goes on when the second start has decided, or while it watches for beats.
    HELD = auto()
    #: Frozen for so long that its beat is old. It goes on when the second job delivers or is refused.
    OLD = auto()


class Rule(Enum):
    """The result that must follow."""

    #: The second start ends with exit code 2, and the first job goes on.
    REFUSED = auto()
    #: The second job continues from the first job's checkpoint or a copy of it.
    GOES_ON = auto()
    #: The second job continues exactly where the first has ended.
    TAKES_OVER = auto()
    #: The second job begins at the server's present position, with a warning.
    BEGINS_ANEW = auto()


@dataclass(frozen=True, slots=True)
class Mix:
    """A combination of two starts."""

    place: Storage
    checkpoint: Checkpoint
    first: First
    same_server_id: bool
    fewer_buckets: bool
    replace_job: bool

    def __str__(self) -> str:
        """Return the mix in the words of the matrix: `copied held other id fewer buckets --replace-job`."""
        words = [self.checkpoint.name.lower(), self.first.name.lower()]
        words += ["same id" if self.same_server_id else "other id"]
        words += ["fewer buckets"] if self.fewer_buckets else []
        words += ["--replace-job"] if self.replace_job else []
        return " ".join(words)

    @property
    def rule(self) -> Rule:
        """Return the result that must follow."""
        if self.checkpoint is Checkpoint.SAME:
            # The kernel keeps a frozen job's lock. A lease ends, which proves that its holder is dead.
            may = self.place is Storage.BUCKET and self.first is First.OLD
            return Rule.GOES_ON if may else Rule.REFUSED
        if self.checkpoint is Checkpoint.COPIED and self.first is First.OLD:
            return Rule.GOES_ON
        if self.replace_job:
            return Rule.TAKES_OVER
        if self.checkpoint is Checkpoint.NEW and self.first is First.OLD:
            return Rule.BEGINS_ANEW
        return Rule.REFUSED

    @property
    def refusal(self) -> str:
        """Return the text that a refused start must log."""
        if self.checkpoint is Checkpoint.SAME:
            return "Another incsnap runs on the checkpoint"
        return "this is an older copy" if self.first is First.OLD else "runs with this topic.prefix"


_SAME, _OTHER = True, False
_FEWER, _AS_MANY = True, False
_REPLACE, _PLAIN = True, False
_IN_A_FOLDER = (
    (Checkpoint.SAME, First.RUNNING, _SAME, _FEWER, _REPLACE),
    (Checkpoint.SAME, First.HELD, _OTHER, _AS_MANY, _PLAIN),
    (Checkpoint.COPIED, First.RUNNING, _OTHER, _AS_MANY, _PLAIN),
    (Checkpoint.COPIED, First.HELD, _SAME, _FEWER, _REPLACE),
    (Checkpoint.COPIED, First.OLD, _OTHER, _FEWER, _PLAIN),
    (Checkpoint.OLDER, First.RUNNING, _SAME, _AS_MANY, _REPLACE),
    (Checkpoint.OLDER, First.HELD, _OTHER, _FEWER, _PLAIN),
    (Checkpoint.NEW, First.RUNNING, _OTHER, _FEWER, _REPLACE),
    (Checkpoint.NEW, First.HELD, _SAME, _AS_MANY, _PLAIN),
    (Checkpoint.OLDER, First.OLD, _OTHER, _AS_MANY, _REPLACE),
    (Checkpoint.SAME, First.OLD, _SAME, _AS_MANY, _REPLACE),
    # This is the last mix: it leaves a job with fewer buckets, and a job that takes over never has more.
    (Checkpoint.NEW, First.OLD, _SAME, _FEWER, _PLAIN),
)
MIXES = (
    *(Mix(Storage.FOLDER, *each) for each in _IN_A_FOLDER),
    *(
        Mix(Storage.BUCKET, checkpoint, first, not same_server_id, not fewer_buckets, not replace_job)
        for checkpoint, first, same_server_id, fewer_buckets, replace_job in _IN_A_FOLDER
    ),
)
