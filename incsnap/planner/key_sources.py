"""The places from which lists of keys come: a signal, a Kafka topic, or files. Each key becomes compact JSON."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from decimal import Decimal
from typing import Any

import pyarrow as pa
from pyarrow import fs, parquet

from incsnap.envelope.listed_keys import KeyRefused, key_text
from incsnap.errors import shorten
from incsnap.kafka.client_settings import ClientSettings
from incsnap.kafka.keys_topic import keys_in
from incsnap.snapshot.commands import ChosenRows

#: Most keys of a list. They pass through the planner's memory, 200 bytes each.
MAX_KEYS = 10_000_000
_ROWS_AT_ONCE = 10_000


def keys_of(chosen: ChosenRows, kafka: ClientSettings) -> Iterator[str]:
    """Yield the keys of a list, perhaps repeatedly.

    Raise KeyRefused if a file cannot be read or holds what is no key, and the errors of `keys_in`.
    """
    for number, key in enumerate(_given(chosen, kafka)):
        if number >= MAX_KEYS:
            raise KeyRefused(f"the list has more than {MAX_KEYS} keys: send several signals")
        yield key_text(key)


def _given(chosen: ChosenRows, kafka: ClientSettings) -> Iterable[Any]:
    if chosen.keys:
        return json.loads(chosen.keys, parse_float=Decimal)  # type: ignore[no-any-return]
    if chosen.topic:
        return (_parsed(content) for content in keys_in(kafka, chosen.topic))
    return _of_files(chosen.files)


def _parsed(content: bytes) -> Any:
    try:
        return json.loads(content, parse_float=Decimal)
    except (ValueError, RecursionError):
        raise KeyRefused(f"{shorten(content.decode(errors='replace'))} is not the JSON of a key") from None


def _of_files(path: str) -> Iterator[Any]:
    """Yield the keys in a file, or in the files of a folder whose names begin with neither `_` nor a dot."""
    try:
        system, place = fs.FileSystem.from_uri(path) if "://" in path else (fs.LocalFileSystem(), path)
        info = system.get_file_info(place)
        names = [place]
        if info.type == fs.FileType.Directory:
            inside = system.get_file_info(fs.FileSelector(place, recursive=True))
            files = (each for each in inside if each.type == fs.FileType.File)
            names = sorted(each.path for each in files if each.base_name[:1] not in "._")
        for name in names:
            with system.open_input_file(name) as file:
                is_parquet = file.read(4) == b"PAR1"
                file.seek(0)
                yield from _of_parquet(file) if is_parquet else _of_lines(file)
    except (OSError, pa.ArrowException) as error:
        raise KeyRefused(f"the keys in {path} cannot be read: {shorten(error)}") from None


def _of_parquet(file: Any) -> Iterator[Any]:
    for batch in parquet.ParquetFile(file).iter_batches(_ROWS_AT_ONCE):
        yield from batch.to_pylist()


def _of_lines(file: Any) -> Iterator[Any]:
    left = b""
    while content := file.read(1 << 20):
        *lines, left = (left + content).split(b"\n")
        yield from (_parsed(line) for line in lines if line.strip())
    if left.strip():
        yield _parsed(left)
