"""The definition that the server makes of a CREATE TABLE, or that SHOW CREATE TABLE prints."""

from __future__ import annotations

from incsnap.ddl.alterations import Alteration, read_elements
from incsnap.ddl.altered import made
from incsnap.ddl.clauses import Clauses
from incsnap.ddl.keys import with_declared
from incsnap.ddl.table_definition import TableDefinition
from incsnap.ddl.table_options import one_charset, read_option
from incsnap.ddl.words import NotUnderstood
from incsnap.events import Session
from incsnap.tables import TableId

#: The settings with which the text of SHOW CREATE TABLE is read.
_PRINTED = Session(sql_mode=0, client="utf8mb4", connection="utf8mb4", explicit_timestamps=True)
#: Words that begin a query behind the partitions. It adds columns to the table that is created.
_QUERIES = frozenset(("SELECT", "TABLE", "VALUES", "WITH", "AS", "IGNORE", "REPLACE", "LIKE"))


def read_definition(printed: str, table: TableId) -> TableDefinition:
    """Return the definition of `table` from the text of SHOW CREATE TABLE, printed in a session without SQL modes.

    Raise NotUnderstood if the text is not understood.
    """
    words = Clauses(printed, _PRINTED, printed=True)
    words.expect("CREATE", "TABLE")
    words.name()
    words.expect("(")
    return read_created(words, table, "")


def read_created(words: Clauses, table: TableId, database_charset: str) -> TableDefinition:
    """Return the definition from the rest of a CREATE TABLE behind its first bracket.

    `database_charset`: the default of the table's database, "" if unknown. SHOW CREATE TABLE lists the indexes of
    foreign keys among the indexes, so its foreign keys add none. Raise NotUnderstood if no default character set is
    known.
    """
    elements, charset = Alteration(), ""
    read_elements(words, elements)
    while not (words.at_end or words.peek() in (";", "PARTITION")):
        if words.skip("START"):  # logged for CREATE TABLE ... SELECT; its rows follow in the binlog
            words.expect("TRANSACTION")
        else:
            charset = one_charset(charset, read_option(words))
            words.skip(",")
    if words.peek() == "PARTITION":
        words.skip_rest(_QUERIES)
    words.must_end()
    charset = charset or database_charset
    if not charset:
        raise NotUnderstood("the default character set of the database is not known")
    declared = [each.column for each in elements.columns]
    columns = [each.column(charset) for each in declared]
    keys = [key for key in elements.keys if not (words.printed and key.for_foreign_key)]
    virtual = tuple(each.name for each in declared if each.virtual)
    return made(table, columns, with_declared((), keys, columns), charset, virtual)
