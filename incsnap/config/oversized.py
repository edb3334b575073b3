"""``incsnap.oversized.change.*``: what becomes of a change that is too large for Kafka."""

from __future__ import annotations

from incsnap.config.patterns import split_list
from incsnap.config.reading import SettingsReader
from incsnap.config.settings import DEAD_LETTER, FAIL, TRUNCATE, OversizedChanges
from incsnap.config.topics import INVALID, LONGEST_NAME

_MODE = "incsnap.oversized.change.handling.mode"
_COLUMNS = "incsnap.oversized.change.truncate.columns"
_TOPIC = "incsnap.oversized.change.dead.letter.topic"


def oversized_changes(reading: SettingsReader, prefix: str, delimiter: str) -> OversizedChanges:
    """Return what the settings say; problems go to ``reading``.

    ``prefix``: topic.prefix; ``delimiter``: topic.delimiter.
    """
    mode = reading.choice(_MODE, FAIL, (FAIL, TRUNCATE, DEAD_LETTER))
    patterns = tuple(part.replace(r"\,", ",") for part in split_list(reading.text(_COLUMNS)))
    columns = tuple(pattern for pattern in patterns if reading.sound(_COLUMNS, pattern))
    if mode == TRUNCATE and not patterns:
        reading.required(_COLUMNS, f"the columns that {_MODE}=truncate may cut")
    topic = reading.text(_TOPIC, INVALID.sub("_", delimiter.join((prefix, "incsnap-dead-letters"))))
    if INVALID.search(topic) or len(topic) > LONGEST_NAME:
        reading.problem(_TOPIC, f"a topic name: letters, digits, . _ -, at most {LONGEST_NAME} characters")
    return OversizedChanges(mode=mode, columns=columns, topic=topic)
