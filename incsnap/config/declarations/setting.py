"""The declaration of a setting. Loader, `incsnap config`, sample file, reference page and errors are made from it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from incsnap.config.declarations.kinds import Kind


@dataclass(frozen=True, slots=True)
class Setting:
    """The declaration of one setting, or of all settings with one prefix (`producer.*`)."""

    name: str  #: as in a properties file; `*` at the end stands for any text
    kind: Kind  #: values that are allowed
    default: str  #: as a file would have it; "": none, or other settings decide (`unset`)
    meaning: str  #: sentences for the sample, the reference page and `incsnap config`
    #: value for the sample, as a comment; the sample shows `default` if this is "". Further lines, and all lines of a
    #: prefix, are whole `name=value`.
    example: str = ""
    unset: str = ""  #: what holds without a value, if `default` is ""
    see: str = ""  #: page, or anchor of operation.md, that explains more
    is_needed: bool = False  #: True: no job can start without a value
    since: str = "0.1"  #: first release that has the setting

    @property
    def value(self) -> Any:
        """The default as a typed value."""
        return self.kind.value(self.default)
