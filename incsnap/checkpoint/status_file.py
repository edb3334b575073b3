"""The status file of a job, which a Unix group may read while all other files are the job's user's alone."""

from __future__ import annotations

import grp
import os
from pathlib import Path

from incsnap.checkpoint.files import Files
from incsnap.checkpoint.location import is_local
from incsnap.errors import ConfigError

_SETTING = "incsnap.status.group"
#: Permissions of the folders above the file, and of the file: the group may open the file, and list nothing.
_FOLDER, _FILE = 0o710, 0o640
#: Name of the file until the group may read it.
_WRITTEN = "status.new"


class SharedStatus:
    """A store of the status file beside a local checkpoint that the Unix group `group` may read too."""

    def __init__(self, checkpoint_location: str, root: str, group: str) -> None:
        """Give the group access to the folders of the checkpoint.

        `root` is incsnap's part of the checkpoint. Raise ConfigError if the checkpoint is not on a local disk, if there
        is no such group, or if the job's user is no member of it.
        """
        if not is_local(checkpoint_location):
            raise ConfigError(
                f"{_SETTING}: {checkpoint_location} is not on a local disk, and has no Unix groups",
                "Remove the setting, and let the store decide who may read.",
            )
        try:
            # Looked up once: a directory service (LDAP) may not answer later.
            self._gid = grp.getgrnam(group).gr_gid
        except KeyError:
            raise ConfigError(
                f"{_SETTING}: this machine has no group {group}", "Create the group, or correct the name."
            ) from None
        self._files = Files(root)
        inner = Path(root.removeprefix("file://")).absolute()
        inner.mkdir(parents=True, exist_ok=True)
        for folder in (inner.parent, inner):
            try:
                self._share(folder, _FOLDER)
            except PermissionError:
                raise ConfigError(
                    f"{_SETTING}: the job's user may not give {folder} to the group {group}",
                    "Add the user to the group, and start the job with this membership.",
                ) from None

    def write(self, name: str, content: bytes) -> None:
        """Write the file, and let the group read it. Raise OSError if that is not possible."""
        # The group may read the file before it takes the place of the file before: a reader may come at any time.
        self._files.write(_WRITTEN, content)
        written = Path(self._files.path(_WRITTEN))
        self._share(written, _FILE)
        os.replace(written, written.with_name(name))

    def _share(self, path: Path, mode: int) -> None:
        os.chown(path, -1, self._gid)
        os.chmod(path, mode)
