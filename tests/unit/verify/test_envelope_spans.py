"""Tests that the places of fields in envelopes are those that a parser of JSON finds."""

from __future__ import annotations

import json
import random
from typing import Any

import pyarrow as pa
import pytest

from incsnap.columns.gather import binary
from incsnap.verify import envelope_spans
from incsnap.verify.envelope_spans import find_envelopes


def envelope(chance: random.Random, **source: Any) -> dict[str, Any]:
    """Return an envelope with texts that contain the names of fields."""
    odd = ["x", 'a"after":{', ',"source":{"file":"no"', ',"op":"d"', "ü\\", ""]

    def row() -> dict[str, Any]:
        return {"id": chance.randrange(1000), "note": chance.choice(odd) * chance.randrange(3), "place": {"x": 1.5}}

    op = chance.choice("cudr")
    named = {
        "version": "3",
        "snapshot": "false",
        "gtid": chance.choice((None, "uuid:12", "uuid:12345")),
        "file": "log.000012",
        "pos": chance.randrange(10**6),
        "row": chance.randrange(100),
        "query": chance.choice((None, *odd)),
    }
    return {
        "before": row() if op in "ud" else None,
        "after": None if op == "d" else row(),
        "source": {**named, **source},
        "transaction": None,
        "op": op,
        "ts_ms": 1_700_000_000_000,
    }


def texts(envelopes: list[dict[str, Any] | None]) -> Any:
    return pa.array([None if each is None else json.dumps(each, separators=(",", ":"), ensure_ascii=False).encode()
                     for each in envelopes], pa.binary())  # fmt: skip


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("guesses", [64, 1, 0])
def test_places_are_those_of_a_parser(seed: int, guesses: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(envelope_spans, "_GUESSES", guesses)
    chance = random.Random(seed)
    envelopes = [None if chance.random() < 0.1 else envelope(chance) for _ in range(60)]
    spans = find_envelopes(texts(envelopes))
    assert spans is not None
    places = spans.places()
    assert places is not None

    rows = [json.loads(row) if row else None for row in binary(spans.rows).to_pylist()]
    assert rows == [each and each["after"] for each in envelopes]
    assert [chr(kind) if kind else None for kind in spans.kinds.tolist()] == [each and each["op"] for each in envelopes]
    assert [column.to_pylist() for column in places] == [
        [each and each["source"][name] for each in envelopes] for name in ("file", "pos", "row")
    ]


def test_a_source_without_a_file_has_no_place() -> None:
    spans = find_envelopes(texts([envelope(random.Random(1), file="")]))

    assert spans is not None
    places = spans.places()
    assert places is not None
    assert [column.to_pylist() for column in places] == [[None]] * 3


def test_a_long_name_of_a_file_is_left_to_the_patterns() -> None:
    spans = find_envelopes(texts([envelope(random.Random(1), file="x" * 200 + ".000001")]))

    assert spans is not None
    assert spans.places() is None


@pytest.mark.parametrize(
    "odd", [b"", b"{}", b"null", b'{"before":null,"after":5,"source":{"file":"a"},"op":"c"}', b'{"after":{},"op":"c"}']
)
def test_other_values_are_left_to_the_patterns(odd: bytes) -> None:
    values = pa.concat_arrays([texts([envelope(random.Random(2))] * 3), pa.array([odd], pa.binary())])

    assert find_envelopes(values) is None


def test_a_column_without_records_has_no_places() -> None:
    spans = find_envelopes(pa.array([], pa.binary()))

    assert spans is not None
    assert len(spans.rows) == 0
