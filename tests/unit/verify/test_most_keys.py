"""A comparison in which more keys differ, or changed meanwhile, than it can look at one by one."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from incsnap.errors import ConfigError
from incsnap.gtid import GtidSet
from incsnap.verify import compared_sides, course
from incsnap.verify.compared_sides import TooManyDiffer
from incsnap.verify.proof import Events, Low, Observation, RowPlace
from incsnap.verify.rounds import Limits

_PLACE = RowPlace(1, 4)
_LOW = Low(GtidSet(), _PLACE)


def refusal(monkeypatch: pytest.MonkeyPatch, differing: range | None, changed: range) -> ConfigError:
    """Return the error of a comparison that looks at 10 keys at most.

    `differing`: the keys whose sides differ; None: more than 10 of one topic, so that nobody counts them.
    """

    def observe(sides: object, keys: None) -> Observation[None, None]:
        if differing is None:
            raise TooManyDiffer
        return Observation(_LOW, None, None, _PLACE)

    def key(number: int) -> tuple[str, bytes]:
        return "p.t", b"%d" % number

    events = Events(_PLACE, changed={key(number) for number in changed})
    sides = SimpleNamespace(events=lambda *place: events, high=lambda: _PLACE)
    whole = SimpleNamespace(differing=lambda: [key(number) for number in differing or ()])
    for name, made in (("LiveSides", sides), ("WholeTables", whole), ("Evidence", None), ("Naming", None)):
        monkeypatch.setattr(course, name, lambda *given, made=made: made)
    monkeypatch.setattr(course, "observe", observe)
    for module in (course, compared_sides):
        monkeypatch.setattr(module, "MOST_KEYS", 10)
    resources: Any = SimpleNamespace(
        settings=SimpleNamespace(topic_prefix="p"),
        client=None,
        connection=None,
        spark=None,
        allowance=None,
        offsets=None,
        limits=Limits(),
        progress=SimpleNamespace(begin=lambda step: None),
        sample=SimpleNamespace(has=lambda keys: np.ones(len(keys), np.bool_)),
    )
    kept: Any = SimpleNamespace(low=_LOW)
    with pytest.raises(ConfigError) as raised:
        course.Course(resources, {}, kept).run({})
    return raised.value


@pytest.mark.parametrize(("differing", "differ"), [(range(11), 11), (range(2, 11), 9), (None, 9)])
def test_many_differences_ask_for_the_file(
    differing: range | None, differ: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    error = refusal(monkeypatch, differing, range(2) if differ == 9 else range(0))

    assert f"At least {differ} keys differ" in error.message
    assert "can look at no more than 10 keys" in error.message
    assert "Does FILE describe these topics?" in error.hint


@pytest.mark.parametrize("differing", [range(0), range(5), range(11), None])
def test_many_changes_ask_for_a_quieter_time(differing: range | None, monkeypatch: pytest.MonkeyPatch) -> None:
    error = refusal(monkeypatch, differing, range(12))

    assert error.message.startswith("12 keys changed while they were compared, and 0 others differ")
    assert "when fewer rows change" in error.hint
    assert "--sample" in error.hint
