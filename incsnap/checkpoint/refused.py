"""Files with the records that Kafka refuses for their size: what each bucket leaves out of a batch.

    refused/<batch>/<bucket>.json    the digest of the batch's end, and its records that are left out

A file is forced to the disk before the bucket's transaction commits. So every repetition of a bucket that has not
committed leaves the same records out. For a bucket that has committed, the file records what it has left out.
"""

from __future__ import annotations

from dataclasses import dataclass

from incsnap.checkpoint.files import Files
from incsnap.snapshot.dataclass_json import from_json, to_json

_FOLDER = "refused"


@dataclass(frozen=True, slots=True)
class RefusedRecord:
    """A record that is left out of a batch."""

    number: int  #: index among the records of its bucket in the batch, from 0
    topic: str  #: topic that the record was for
    table: str  #: "" for a record of no table, for example a notification
    key: str  #: the record's key in hexadecimal digits
    name: str  #: values of the key, for people
    bytes: int  #: key and value, uncompressed
    reason: str  #: the limit that decided, for people
    window: str = ""  #: the window's file, if the record is a row of a snapshot
    origin: str = ""  #: place of the change in the binlog, for people


@dataclass(frozen=True, slots=True)
class _Content:
    """The content of a file."""

    digest: str  #: digest of the batch's end
    records: tuple[RefusedRecord, ...]  #: records that the bucket leaves out


class RefusedRecords:
    """The records that the batches of one checkpoint leave out. It can be pickled."""

    def __init__(self, files: Files) -> None:
        self._files = files

    def write(self, batch: int, bucket: int, digest: str, records: tuple[RefusedRecord, ...]) -> None:
        """Write the records that the bucket leaves out of the batch. The file survives a power cut."""
        content = to_json(_Content, _Content(digest, records))
        self._files.write_json(_file(batch, bucket), content, durable=True)

    def read(self, batch: int, bucket: int, digest: str) -> tuple[RefusedRecord, ...]:
        """Return the records that an earlier attempt at exactly this batch left out of the bucket."""
        content = self._content(_file(batch, bucket))
        return content.records if content is not None and content.digest == digest else ()

    def of_batch(self, batch: int) -> tuple[RefusedRecord, ...]:
        """Return the records that all buckets have left out of a batch that is done."""
        names = self._files.names(f"{_FOLDER}/{batch}")
        contents = (self._content(f"{_FOLDER}/{batch}/{name}") for name in sorted(names))
        return tuple(record for content in contents if content is not None for record in content.records)

    def forget(self, batch: int) -> None:
        """Delete the files of the batch."""
        self._files.delete_folder(f"{_FOLDER}/{batch}")

    def forget_before(self, batch: int) -> None:
        """Delete the files of batches below `batch`."""
        for name in self._files.names(_FOLDER):
            if name.isdigit() and int(name) < batch:
                self.forget(int(name))

    def _content(self, name: str) -> _Content | None:
        """Return the content of a file, or None if the file is missing or torn. Then its bucket has not committed."""
        try:
            content = self._files.read_json(name)
            return None if content is None else from_json(_Content, content)
        except ValueError:
            return None


def _file(batch: int, bucket: int) -> str:
    return f"{_FOLDER}/{batch}/{bucket}.json"
