"""Groups of MySQL's error numbers by their meaning for incsnap. https://dev.mysql.com/doc/mysql-errors/en/"""

from __future__ import annotations

from typing import Final

from pymysql.constants import CR, ER

#: Error numbers without a name in PyMySQL: a user without password, purged GTIDs, and five ends of a connection.
_ACCESS_DENIED_NO_PASSWORD = 1698
PURGED_GTIDS: Final = 1789
_CONNECTION_KILLED, _SESSION_KILLED, _IDLE_TOO_LONG = 1927, 3169, 4031
_OFFLINE_MODE, _SERVER_NOT_AVAILABLE = 3032, 3168

#: The connection has ended by KILL, by a shutdown or by a network error.
_ENDED = frozenset(
    {
        ER.SERVER_SHUTDOWN,
        ER.ABORTING_CONNECTION,
        ER.NET_PACKET_TOO_LARGE,
        _CONNECTION_KILLED,
        CR.CR_SERVER_GONE_ERROR,
        CR.CR_SERVER_LOST,
        CR.CR_SERVER_LOST_EXTENDED,
        _IDLE_TOO_LONG,
    }
)
#: The connection cannot be used any more, or no connection can be opened. 0 is an error of the driver without a number.
GONE: Final = _ENDED | {
    0,
    CR.CR_CONNECTION_ERROR,
    CR.CR_CONN_HOST_ERROR,
    CR.CR_COMMANDS_OUT_OF_SYNC,
    _OFFLINE_MODE,
    _SERVER_NOT_AVAILABLE,
}
#: The replication stream has broken off, and the binlog is in order.
STREAM_ENDED: Final = _ENDED | {
    ER.FORCING_CLOSE,
    ER.NET_READ_INTERRUPTED,
    ER.NET_ERROR_ON_WRITE,
    ER.NET_WRITE_INTERRUPTED,
    ER.NEW_ABORTING_CONNECTION,
    ER.QUERY_INTERRUPTED,
    _SESSION_KILLED,
}

#: The server refuses the login, or the user's access to the database.
NOT_LET_IN: Final = frozenset({ER.DBACCESS_DENIED_ERROR, ER.ACCESS_DENIED_ERROR, _ACCESS_DENIED_NO_PASSWORD})
#: The user lacks the privilege for a statement, or cannot log in.
NO_PRIVILEGE: Final = NOT_LET_IN | {ER.TABLEACCESS_DENIED_ERROR, ER.SPECIFIC_ACCESS_DENIED_ERROR}

#: Another session blocks for a moment: a locked table, a deadlock or KILL QUERY.
IN_THE_WAY: Final = frozenset({ER.LOCK_WAIT_TIMEOUT, ER.LOCK_DEADLOCK, ER.QUERY_INTERRUPTED})
#: No such column, table or index. The binlog already contains the DDL that changed it, but the stream has not reached
#: it.
CHANGED: Final = frozenset({ER.BAD_FIELD_ERROR, ER.NO_SUCH_TABLE, ER.KEY_DOES_NOT_EXITS})
