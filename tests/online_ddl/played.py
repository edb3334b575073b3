"""The program `python -m tests.online_ddl.played`: the statements of pt-online-schema-change, with copies of rows."""

from __future__ import annotations

import argparse
from contextlib import closing

from lab.addresses import MySqlAddress
from lab.mysql_client import connect
from tests.support.online_runs import pt_osc

_CHUNK = 5_000


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.online_ddl.played", description=__doc__)
    for name in ("host", "port", "user", "password", "database", "table", "alter"):
        parser.add_argument(name)
    asked = parser.parse_args()
    mysql = MySqlAddress(asked.host, int(asked.port), asked.user, asked.password)
    with closing(connect(mysql, database=asked.database)) as connection, connection.cursor() as cursor:
        cursor.execute(f"SHOW CREATE TABLE `{asked.table}`")
        text = cursor.fetchall()[0][1]
        cursor.execute(f"SHOW COLUMNS FROM `{asked.table}`")
        columns = [row[0] for row in cursor.fetchall()]
        named = ", ".join(f"`{column}`" for column in columns)
        body = text[text.index("(") + 1 : text.rindex(")")].strip()
        statements = pt_osc(asked.database, asked.table, asked.alter, definition=body, columns=named)
        copy = f"`_{asked.table}_new`"
        for statement in statements:
            if statement.startswith("RENAME"):
                last = -(1 << 63)
                cursor.execute(f"SELECT MAX({columns[0]}) FROM `{asked.table}`")
                [(end,)] = cursor.fetchall()
                while last < end:
                    chunk = f"SELECT {columns[0]} FROM `{asked.table}` WHERE {columns[0]} > {last}"
                    cursor.execute(f"SELECT MAX({columns[0]}) FROM ({chunk} ORDER BY 1 LIMIT {_CHUNK}) AS chunk")
                    [(upper,)] = cursor.fetchall()
                    if upper is None:
                        break
                    cursor.execute(
                        f"INSERT LOW_PRIORITY IGNORE INTO {copy} ({named}) SELECT {named} FROM `{asked.table}`"
                        f" FORCE INDEX(PRIMARY) WHERE {columns[0]} > {last} AND {columns[0]} <= {upper}"
                        " LOCK IN SHARE MODE"
                    )
                    last = upper
            cursor.execute(statement)


if __name__ == "__main__":
    main()
