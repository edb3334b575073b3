"""Error numbers of MySQL, by what they mean to us. https://dev.mysql.com/doc/mysql-errors/en/"""

from __future__ import annotations

from typing import Final

from pymysql.constants import CR, ER

#: Numbers that PyMySQL has no name for: a user without password, GTIDs purged, and five ends of a connection.
_ACCESS_DENIED_NO_PASSWORD = 1698
PURGED_GTIDS: Final = 1789
_CONNECTION_KILLED, _SESSION_KILLED, _IDLE_TOO_LONG = 1927, 3169, 4031
_OFFLINE_MODE, _SERVER_NOT_AVAILABLE = 3032, 3168

#: The connection has ended: by KILL, a shutdown, an error of the network.
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
#: What a client is told when its connection cannot be used any more, or none can be had; 0: an error of the driver's
#: own, without a number.
GONE: Final = _ENDED | {
    0,
    CR.CR_CONNECTION_ERROR,
    CR.CR_CONN_HOST_ERROR,
    CR.CR_COMMANDS_OUT_OF_SYNC,
    _OFFLINE_MODE,
    _SERVER_NOT_AVAILABLE,
}
#: What a replica is told when its stream breaks off, and nothing is wrong with the binlog.
STREAM_ENDED: Final = _ENDED | {
    ER.FORCING_CLOSE,
    ER.NET_READ_INTERRUPTED,
    ER.NET_ERROR_ON_WRITE,
    ER.NET_WRITE_INTERRUPTED,
    ER.NEW_ABORTING_CONNECTION,
    ER.QUERY_INTERRUPTED,
    _SESSION_KILLED,
}

#: The user is not let in.
NOT_LET_IN: Final = frozenset({ER.DBACCESS_DENIED_ERROR, ER.ACCESS_DENIED_ERROR, _ACCESS_DENIED_NO_PASSWORD})
#: The user is let in, perhaps, but lacks the right to what it asks for.
NO_PRIVILEGE: Final = NOT_LET_IN | {ER.TABLEACCESS_DENIED_ERROR, ER.SPECIFIC_ACCESS_DENIED_ERROR}

#: Somebody else is in the way for a moment: a locked table, a deadlock, KILL QUERY.
IN_THE_WAY: Final = frozenset({ER.LOCK_WAIT_TIMEOUT, ER.LOCK_DEADLOCK, ER.QUERY_INTERRUPTED})
#: No such column, table, index: a DDL is on its way through the log.
CHANGED: Final = frozenset({ER.BAD_FIELD_ERROR, ER.NO_SUCH_TABLE, ER.KEY_DOES_NOT_EXITS})
