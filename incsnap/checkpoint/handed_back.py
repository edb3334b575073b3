"""A file that marks a checkpoint whose place was handed back to a connector. Such a checkpoint does not run again."""

from __future__ import annotations

from incsnap.checkpoint.files import Files
from incsnap.errors import ConfigError

_NAME = "handed-back.json"


def mark_handed_back(files: Files, connector: str, *, done: bool) -> None:
    """Mark the checkpoint, forced to the disk. `done`: whether `connector` has the place; else it is about to get it.

    Without the first mark the job could run again after a crash, although the connector has the place.
    """
    files.write_json(_NAME, {"connector": connector, "done": done}, durable=True)


def how_again(files: Files) -> str:
    """Return how the place is given again if the connector never got it, in words."""
    return f"delete {files.path(_NAME)}, and run `incsnap hand-back` again"


def refuse_handed_back(files: Files, *, also_begun: bool = True) -> None:
    """Raise ConfigError if the checkpoint was handed back.

    `also_begun`: also if a hand-back was begun and perhaps not finished.
    """
    content = files.read_json(_NAME)
    if content is None or not (also_begun or content.get("done")):
        return
    connector, takeover = content.get("connector", ""), "run `incsnap takeover` with a new checkpoint.location."
    if not content.get("done"):
        raise ConfigError(
            f"the checkpoint at {files.path('')} may have been handed back to the connector {connector}: a hand-back"
            " has begun and not ended",
            f"Run `incsnap hand-back` again before the connector starts. Or look at what the connector has (GET"
            f" /connectors/{connector}/offsets). If it does not have the job's place, delete {files.path(_NAME)}, and"
            f" the job goes on. If it has that place, stop it and {takeover}",
        )
    raise ConfigError(
        f"the checkpoint at {files.path('')} was handed back to the connector {connector}",
        f"To continue where the connector is, stop it and {takeover} If the connector never got the job's place, for"
        f" example because the offset is in a wrong file, {how_again(files)}.",
    )
