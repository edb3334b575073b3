"""What the settings say of keys and values: the names in them, the modes of types, the format of either side."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from incsnap.envelope.column_rules import ColumnRules
from incsnap.transforms.chain import Chain
from incsnap.types.modes import Modes


@dataclass(frozen=True, slots=True)
class FormatChoice:
    """The format of keys, or of values. ``kind`` is json, avro, or text or bytes (of events; all else is JSON then), of
    values also row or images: columns of a DataFrame (``frame_format``). ``schemas``: each message brings its JSON
    schema; ``decimals``: base64, or numeric: decimal.format of JSON. ``raw``: of events what is bytes stays what it is,
    and only the rest is JSON."""

    kind: str = "json"
    schemas: bool = False
    decimals: str = field(default="base64", repr=False)
    raw: bool = False


@dataclass(frozen=True, slots=True)
class EnvelopeSettings:
    """``name`` is topic.prefix, ``version`` incsnap's; ``tombstones`` is tombstones.on.delete, ``skipped``
    skipped.operations, ``transactions`` provide.transaction.metadata, ``schema_names`` schema.name.adjustment.mode,
    ``skip_unchanged`` skip.messages.without.change. ``marked``: records bring what a DataFrame tells beside them.
    """

    name: str
    version: str
    modes: Modes = field(default_factory=Modes)
    tombstones: bool = True
    rules: ColumnRules = field(default_factory=ColumnRules)
    skipped: frozenset[str] = frozenset("t")
    key: FormatChoice = field(default_factory=FormatChoice)
    value: FormatChoice = field(default_factory=FormatChoice)
    transactions: bool = False
    schema_names: str = "none"
    transforms: Chain = ()
    skip_unchanged: bool = False
    marked: bool = False

    @property
    def key_modes(self) -> Modes:
        return replace(self.modes, json_decimals=self.key.decimals)

    @property
    def value_modes(self) -> Modes:
        return replace(self.modes, json_decimals=self.value.decimals)
