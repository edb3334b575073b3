"""The places from which lists of keys come: a signal, a Kafka topic, or files. Each key becomes compact JSON."""

from __future__ import annotations

import errno
import re
from collections.abc import Iterable, Iterator
from typing import Any
from urllib.parse import unquote, urlparse

import pyarrow as pa
from pyarrow import fs, parquet

from incsnap.checkpoint.files import Files
from incsnap.config.object_store import is_object_store
from incsnap.envelope.listed_keys import KeyRefused, key_text, parsed_key
from incsnap.errors import ServerUnreachable, shorten
from incsnap.kafka.client_settings import ClientSettings
from incsnap.kafka.keys_topic import keys_in
from incsnap.snapshot.commands import ChosenRows

#: Most keys of a list. They pass through the planner's memory, 200 bytes each: 2 GB.
MAX_KEYS = 10_000_000
_ROWS_AT_ONCE = 10_000
#: Characters of an error. pyarrow's texts begin with the path.
_REASON = 300
_AWAY = "Check that the server or the disk with the files answers."
#: Words of errors of pyarrow's clients that come again. They have no number.
_WORDS_FOR_GOOD = ("ACCESS_DENIED", "Unable to load")
#: Numbers of errors that a path brings again until a person changes something.
_FOR_GOOD = (errno.ENOENT, errno.EACCES, errno.EPERM, errno.ENOTDIR, errno.EISDIR, errno.ENAMETOOLONG, errno.ELOOP)
#: A URI of a local file. `#` and `?` are characters of its name: Spark and shells do not write them as %23 and %3F.
_FILE_URI = re.compile(r"file:(?://[^/]*)?(.*)", re.DOTALL | re.IGNORECASE)


def keys_of(chosen: ChosenRows, kafka: ClientSettings) -> Iterator[str]:
    """Yield the keys of a list, perhaps repeatedly.

    Raise KeyRefused if a file does not exist, may not be read, or holds what is no key. Raise ServerUnreachable or
    StoreFailed if the place of the files does not answer, and the errors of `keys_in`.
    """
    for number, key in enumerate(_given(chosen, kafka)):
        if number >= MAX_KEYS:
            raise KeyRefused(f"the list has more than {MAX_KEYS} keys: send several signals")
        yield key_text(key)


def _given(chosen: ChosenRows, kafka: ClientSettings) -> Iterable[Any]:
    if chosen.keys:
        return parsed_key(chosen.keys)  # type: ignore[no-any-return]
    if chosen.topic:
        return (parsed_key(content) for content in keys_in(kafka, chosen.topic))
    return _of_files(chosen.files)


def _of_files(path: str) -> Iterator[Any]:
    """Yield the keys in a file, or in the files of a folder that are not hidden."""
    if is_in_bucket(path) and "@" in urlparse(path).netloc:
        raise KeyRefused(
            f"{_shown(path)} has a login: leave it out, and set the access to the bucket in the job's file"
        )
    try:
        for opened in _in_bucket(path.rstrip("/")) if is_in_bucket(path) else _in_folder(path):
            with opened as file:
                is_parquet = file.read(4) == b"PAR1"
                file.seek(0)
                yield from _of_parquet(file) if is_parquet else _of_lines(file)
    except FileNotFoundError:
        # The text of pyarrow begins with the path, and the reason behind a long path is cut off.
        raise KeyRefused(f"the keys in {_shown(path)} cannot be read: there is no such file or folder") from None
    except (OSError, pa.ArrowException) as error:
        reason = shorten(str(error).replace(path, _shown(path)), _REASON)
        if isinstance(error, OSError) and _passes(error):
            raise ServerUnreachable(f"the keys in {_shown(path)} cannot be read now: {reason}", _AWAY) from None
        raise KeyRefused(f"the keys in {_shown(path)} cannot be read: {reason}") from None


def _passes(error: OSError) -> bool:
    """Whether the same path may be read later: a server or a disk does not answer. pyarrow's clients give no number."""
    return error.errno not in _FOR_GOOD and not any(words in str(error) for words in _WORDS_FOR_GOOD)


def is_in_bucket(path: str) -> bool:
    """Whether the settings give the access to the files at `path`: a URI of a bucket that holds no access of its own.

    pyarrow reads an `s3://` URI with a query, such as `?region=eu-west-1&endpoint_override=...`, or with credentials.
    """
    uri = urlparse(path)
    return is_object_store(path) and not (uri.scheme == "s3" and (uri.query or "@" in uri.netloc))


def _shown(path: str) -> str:
    """Return a path for messages: a URI without its login and its query, which may have an access key."""
    if "://" not in path or _FILE_URI.match(path):
        return path
    scheme, _, rest = path.partition("?")[0].partition("://")
    netloc, slash, name = rest.partition("/")
    return f"{scheme}://{netloc.rpartition('@')[2]}{slash}{name}"


def _in_folder(path: str) -> Iterator[Any]:
    """Yield the opened files at a path, or at a URI of Spark or pyarrow."""
    if local := _FILE_URI.match(path):
        path = unquote(local[1])
    system, place = fs.FileSystem.from_uri(path) if "://" in path else (fs.LocalFileSystem(), path)
    names = [place]
    if system.get_file_info(place).type == fs.FileType.Directory:
        inside = system.get_file_info(fs.FileSelector(place, recursive=True))
        files = (each for each in inside if each.type == fs.FileType.File)
        names = sorted(each.path for each in files if not _is_hidden(each.path.removeprefix(place).strip("/")))
    yield from map(system.open_input_file, names)


def _is_hidden(path: str) -> bool:
    """Whether a name in a path begins with `_` or a dot: Spark and Hadoop write such files beside the data."""
    return any(name[:1] in ("_", ".") for name in path.split("/"))


def _in_bucket(uri: str) -> Iterator[Any]:
    """Yield the opened objects at a URI, as an object or as a folder. Raise FileNotFoundError if there are none.

    The client is that of a checkpoint in a bucket, which has the credentials of the settings.
    """
    folder, _, name = uri.rpartition("/")
    file = Files(folder).opened(name) if urlparse(folder).netloc else None
    if file is not None:
        yield file
        return
    names = Files(uri).names("")
    if not names:
        raise FileNotFoundError("there is no such file or folder")
    for inside in sorted(names):
        if not _is_hidden(inside):
            yield from _in_bucket(f"{uri}/{inside}")


def _of_parquet(file: Any) -> Iterator[Any]:
    try:
        for batch in parquet.ParquetFile(file).iter_batches(_ROWS_AT_ONCE):
            yield from batch.to_pylist()
    except OSError as error:
        # pyarrow has one error for a broken file and for a file that it cannot read.
        file.seek(0)
        file.read(1)
        raise pa.ArrowInvalid(str(error)) from None


def _of_lines(file: Any) -> Iterator[Any]:
    left = b""
    while content := file.read(1 << 20):
        *lines, left = (left + content).split(b"\n")
        yield from (parsed_key(line) for line in lines if line.strip())
    if left.strip():
        yield parsed_key(left)
