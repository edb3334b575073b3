"""The mysqld options of every MySQL server that the lab starts, in Docker or fetched."""

from __future__ import annotations

import os

#: Options that incsnap requires of a server (see `incsnap check`). Everything else is MySQL's default, so that commits
#: pass the stages of a user's server: sync_binlog=1 decides when an event is sent.
MYSQL_OPTIONS = (
    "--server-id=1",
    "--log-bin=binlog",
    "--gtid-mode=ON",
    "--enforce-gtid-consistency=ON",
    "--binlog-row-image=FULL",
    # INCSNAP_ROW_METADATA=MINIMAL selects MySQL's default (CONTRIBUTING.md).
    f"--binlog-row-metadata={os.environ.get('INCSNAP_ROW_METADATA', 'FULL')}",
    "--innodb-buffer-pool-size=256M",
    "--innodb-redo-log-capacity=512M",
    "--max-connections=300",
)
