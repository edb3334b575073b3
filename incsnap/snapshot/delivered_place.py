"""The place that a job has delivered, as JSON for the control topic. Another job can continue there.

`from` and `to` are offsets without their snapshot: the beginning and the end of a batch. A beat has `to` alone: the end
of a batch that is done in all buckets (`docs/adr/0018-one-start-of-a-prefix.md`).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from incsnap.errors import OffsetError
from incsnap.snapshot.context import SnapshotContext, id_of
from incsnap.snapshot.offset import Offset, TopicLayout

#: Most bytes of a place in a control record. A longer place (a batch of thousands of tables) is left out; the next beat
#: has it.
_MOST = 65_536
#: Most tables with an unfinished snapshot that are named.
_TABLES = 20
#: Beginning of the ids of signals by which `incsnap verify --repair` asks for keys.
REPAIR_ID = "incsnap-repair-"


@dataclass(frozen=True, slots=True)
class DeliveredPlace:
    """A place, as another job reads it."""

    begin: Offset | None  #: beginning of the batch; None for the place in a beat
    end: Offset  #: end of the batch
    choices: str  #: digest of the settings that decide which records the batch has
    tables: tuple[str, ...]  #: tables whose snapshot was under way at the end
    has_more: bool = False  #: whether more tables than these had a snapshot under way


def batch_place(begin: Offset, end: Offset, choices: str) -> str:
    """Return the place of a batch as JSON, or "" if it is too long for a control record.

    `choices`: as in `complete_place`.
    """
    first = replace(begin, layout=TopicLayout(begin.layout.buckets))
    text = json.dumps({"from": _without_snapshot(first), **complete_place(end, choices)}, separators=(",", ":"))
    return text if len(text) <= _MOST else ""


def complete_place(end: Offset, choices: str) -> dict[str, Any]:
    """Return the place at the end of a batch that is done in all buckets, as a dict of JSON primitives.

    `choices` is the digest of the settings that decide which records the batch has.
    """
    tables = list(dict.fromkeys(map(str, end.snapshot.unfinished())))
    place: dict[str, Any] = {"to": _without_snapshot(end), "choices": choices}
    if tables:
        place["tables"] = tables[:_TABLES]
    if len(tables) > _TABLES:
        place["more"] = True
    return place


def snapshots_at(snapshot: SnapshotContext) -> dict[str, Any]:
    """Return what others may know about snapshots at the end of a batch, as a dict of JSON primitives.

    `paused`: id of the signal that asked for a pause; "" without a pause. `repairs`: the last signals of repairs, each
    with `open` or `done`.
    """
    requests = (*(scan.request for scan in snapshot.scans), *snapshot.queue)
    unfinished = {id_of(request.signal) for request in requests}
    repairs = {
        name: "open" if name in unfinished else "done"
        for name in dict.fromkeys((*snapshot.recent, *sorted(unfinished)))
        if name.startswith(REPAIR_ID)
    }
    return {"paused": (snapshot.paused_by or "unknown") if snapshot.paused else "", "repairs": repairs}


def delivered_place(content: Mapping[str, Any]) -> DeliveredPlace:
    """Return the place that `batch_place` or `complete_place` wrote. Raise OffsetError for anything else."""
    try:
        begin = Offset.load(content["from"]) if "from" in content else None
        tables = tuple(map(str, content.get("tables", ())))
        end, has_more = Offset.load(content["to"]), bool(content.get("more"))
        return DeliveredPlace(begin, end, str(content["choices"]), tables, has_more)
    except (KeyError, TypeError, AttributeError) as error:
        raise OffsetError(f"a place on the control topic is damaged: {error}") from error


def _without_snapshot(offset: Offset) -> dict[str, Any]:
    """Return the offset as JSON, without the parts that refer to the job's own checkpoint.

    Another job has no use for them.
    """
    prepared = tuple(replace(each, parts=()) for each in offset.prepared)
    return replace(offset, snapshot=SnapshotContext(), prepared=prepared, form="", defaults="").dump()
