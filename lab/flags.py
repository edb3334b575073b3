"""The mysqld options of every MySQL that is started here, from Docker or fetched."""

from __future__ import annotations

import os

#: What incsnap needs of a server (see `incsnap check`). The rest is MySQL's default, so that commits go through the
#: stages a user's server has (sync_binlog=1 decides when an event is sent).
MYSQL_OPTIONS = (
    "--server-id=1",
    "--log-bin=binlog",
    "--gtid-mode=ON",
    "--enforce-gtid-consistency=ON",
    "--binlog-row-image=FULL",
    # The lane of MySQL's default: INCSNAP_ROW_METADATA=MINIMAL (CONTRIBUTING.md).
    f"--binlog-row-metadata={os.environ.get('INCSNAP_ROW_METADATA', 'FULL')}",
    "--innodb-buffer-pool-size=256M",
    "--innodb-redo-log-capacity=512M",
    "--max-connections=300",
)
