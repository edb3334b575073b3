from __future__ import annotations

import tracemalloc
from dataclasses import replace

import pytest

from incsnap.ddl.created import read_definition
from incsnap.ddl.follow import Followed, follow
from incsnap.ddl.statements import schema_change
from incsnap.ddl.table_definition import Definitions, TableDefinition
from incsnap.ddl.words import ANSI_QUOTES, NO_BACKSLASH_ESCAPES
from incsnap.events import SchemaChange, Session
from incsnap.tables import Column, TableId, TableShape

_T, _U = TableId("shop", "t"), TableId("shop", "u")
_PRINTED = """CREATE TABLE `t` (
  `id` int NOT NULL AUTO_INCREMENT,
  `name` varchar(10) DEFAULT NULL,
  `size` enum('S','M') CHARACTER SET latin1 COLLATE latin1_swedish_ci NOT NULL,
  PRIMARY KEY (`id`),
  UNIQUE KEY `name` (`name`),
  KEY `size` (`size`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci
/*!50100 PARTITION BY HASH (`id`)
PARTITIONS 2 */"""
_SESSION = Session("shop", 0, "utf8mb4", "utf8mb4", "utf8mb4", explicit_timestamps=True)
_KNOWN = Definitions({_T: read_definition(_PRINTED, _T)}, {"shop": "utf8mb4", "old": "latin1"})
_ID, _NAME, _SIZE = "id int!", "name varchar(40) utf8mb4", "size enum(S,M)! latin1"
_ALL = f"{_ID} | {_NAME} | {_SIZE}"
_UNCHANGED = f"{_ALL} | by id"


def run(
    sql: str,
    known: Definitions = _KNOWN,
    session: Session = _SESSION,
    *,
    has_xid: bool = False,
    in_transaction: bool = False,
    **options: object,
) -> Followed:
    change = schema_change(sql, session.database, sql_mode=session.sql_mode) or SchemaChange(None, "", sql)
    change = replace(change, session=session, has_xid=has_xid, in_transaction=in_transaction)
    return follow(change, known, **options)  # type: ignore[arg-type]


def shown(definition: TableDefinition) -> str:
    """Return columns (! is NOT NULL) and record key as text: `a int! | b varchar(40) utf8mb4 | by a`."""
    shape = definition.shape
    key = ",".join(shape.columns[place].name for place in shape.key)
    return " | ".join([*map(_column, shape.columns), f"by {key}" if key else "no key"])


def _column(column: Column) -> str:
    numbers = [column.length, column.precision, column.scale, column.fraction]
    inside = ",".join(column.values) or ",".join(str(number) for number in numbers if number)
    sign = " unsigned" if column.unsigned else ""
    charset = f" {column.charset}" if column.charset not in ("", "binary") else ""
    brackets = f"({inside})" if inside else ""
    return f"{column.name} {column.type}{brackets}{sign}{'' if column.nullable else '!'}{charset}"


def behind(sql: str, table: TableId = _T, **options: object) -> str:
    followed = run(sql, **options)  # type: ignore[arg-type]
    assert not followed.lost
    return shown(followed.known.tables[table])


def lost(sql: str, **options: object) -> str:
    followed = run(sql, **options)  # type: ignore[arg-type]
    assert _T not in followed.known.tables or _T not in followed.lost
    return "; ".join(sorted(set(followed.lost.values())))


def test_what_the_server_prints_is_read() -> None:
    assert shown(_KNOWN.tables[_T]) == _UNCHANGED


def test_what_percona_server_prints_of_compressed_columns_is_read() -> None:
    compressed = "/*!50633 COLUMN_FORMAT COMPRESSED WITH COMPRESSION_DICTIONARY `words` */ DEFAULT NULL"
    printed = _PRINTED.replace("DEFAULT NULL", compressed)
    assert compressed in printed
    assert read_definition(printed, _T) == _KNOWN.tables[_T]


@pytest.mark.parametrize(
    ("clauses", "expected"),
    [
        ("ADD c INT", f"{_ID} | {_NAME} | {_SIZE} | c int | by id"),
        ("ADD COLUMN (c INT NOT NULL, d DATE)", f"{_ALL} | c int! | d date | by id"),
        ("ADD c INT FIRST, ADD d INT AFTER c", f"c int | d int | {_UNCHANGED}"),
        ("ADD c INT AFTER size, MODIFY size INT AFTER id", f"{_ID} | size int | {_NAME} | c int | by id"),
        ("DROP id, ADD id INT, DROP PRIMARY KEY, ADD PRIMARY KEY (id)", f"{_NAME} | {_SIZE} | {_ID} | by id"),
        ("DROP name, ADD c INT AFTER ID", f"{_ID} | c int | {_SIZE} | by id"),
        ("DROP COLUMN id", f"{_NAME} | {_SIZE} | no key"),
        (
            "RENAME COLUMN id TO name, RENAME COLUMN name TO id",
            f"name int! | id varchar(40) utf8mb4 | {_SIZE} | by name",
        ),
        ("CHANGE id `key` BIGINT AFTER size", f"{_NAME} | {_SIZE} | key bigint! | by key"),
        ("MODIFY id BIGINT UNSIGNED", f"id bigint unsigned! | {_NAME} | {_SIZE} | by id"),
        ("MODIFY NAME TEXT", f"{_ID} | NAME text utf8mb4 | {_SIZE} | by id"),
        ("MODIFY name CHAR(5) CHARSET latin1 FIRST", f"name char(5) latin1 | {_ID} | {_SIZE} | by id"),
        ("MODIFY size ENUM('L ', 'it''s') COLLATE latin1_bin", f"{_ID} | {_NAME} | size enum(L,it's) latin1 | by id"),
        ("DROP PRIMARY KEY", f"{_ALL} | no key"),
        ("DROP PRIMARY KEY, ADD PRIMARY KEY (name)", f"{_ID} | name varchar(40)! utf8mb4 | {_SIZE} | by name"),
        ("DROP PRIMARY KEY, MODIFY name VARCHAR(9) NOT NULL", f"{_ID} | name varchar(36)! utf8mb4 | {_SIZE} | by name"),
        ("DROP PRIMARY KEY, ADD UNIQUE (id, size)", f"{_ALL} | by id,size"),
        ("DROP PRIMARY KEY, ADD CONSTRAINT c UNIQUE KEY (id)", _UNCHANGED),
        ("DROP CONSTRAINT `PRIMARY`", f"{_ALL} | no key"),
        ("CONVERT TO CHARACTER SET utf8mb3", f"{_ID} | name varchar(30) utf8mb3 | size enum(S,M)! utf8mb3 | by id"),
        ("CHARSET latin1, ADD c CHAR", f"{_ID} | {_NAME} | {_SIZE} | c char(1) latin1 | by id"),
        (
            "ADD c CHAR COLLATE gbk_bin, ADD d CHAR BYTE, ADD e NCHAR",
            f"{_ALL} | c char(2) gbk | d binary(1) | e char(3) utf8mb3 | by id",
        ),
        ("ORDER BY name DESC, id, ADD c INT", f"{_ALL} | c int | by id"),
        ("ADD c INT GENERATED ALWAYS AS (id + (1)) STORED NOT NULL COMMENT ', DROP name'", f"{_ALL} | c int! | by id"),
        (
            "ADD c DATETIME(3) DEFAULT NOW(3) ON UPDATE NOW(3), ADD d DECIMAL(6,2) DEFAULT -1.5e-3",
            f"{_ALL} | c datetime(3) | d decimal(6,2) | by id",
        ),
        (
            "ADD c SERIAL, ADD d BOOL, ADD e DOUBLE PRECISION ZEROFILL",
            f"{_ALL} | c bigint unsigned! | d tinyint | e double unsigned | by id",
        ),
        (
            "ADD c TEXT COLUMN_FORMAT COMPRESSED NOT NULL,"
            " ADD d BLOB /*!50633 COLUMN_FORMAT COMPRESSED WITH COMPRESSION_DICTIONARY `d d` */ COMMENT 'x'",
            f"{_ALL} | c text! utf8mb4 | d blob | by id",
        ),
        (
            "ADD c VARCHAR(30000), ADD d TEXT(64), ADD e LONG",
            f"{_ALL} | c mediumtext utf8mb4 | d text utf8mb4 | e mediumtext utf8mb4 | by id",
        ),
        ("/*!80000 ADD c INT */ /* , DROP id */ -- , DROP name\n", f"{_ALL} | c int | by id"),
    ],
)
def test_clauses_that_change_columns_or_the_key_are_followed(clauses: str, expected: str) -> None:
    assert behind(f"ALTER TABLE t {clauses}") == expected


@pytest.mark.parametrize(
    "sql",
    [
        "ALTER TABLE t ADD INDEX (name), ADD FULLTEXT f (name), ADD CHECK (id > 0) NOT ENFORCED",
        "ALTER TABLE t ADD CONSTRAINT c FOREIGN KEY (id) REFERENCES p (id) ON DELETE SET NULL ON UPDATE CASCADE",
        "ALTER TABLE t ADD UNIQUE i (size DESC, (name)) USING BTREE COMMENT 'x', DROP INDEX size",
        "ALTER TABLE t DROP KEY name, RENAME INDEX size TO s, ALTER INDEX s INVISIBLE",
        "ALTER TABLE t ALTER name SET DEFAULT ('x'), ALTER COLUMN size DROP DEFAULT, ALTER id SET INVISIBLE",
        "ALTER TABLE t COMMENT='RENAME TO z' ENGINE InnoDB, AUTO_INCREMENT 9, ALGORITHM=INPLACE, LOCK NONE, FORCE",
        "ALTER TABLE t PARTITION BY KEY (id) PARTITIONS 4",
        "ALTER TABLE t ADD PARTITION (PARTITION p1 VALUES LESS THAN (10) COMMENT = ')')",
        "ALTER TABLE t EXCHANGE PARTITION p0 WITH TABLE t WITHOUT VALIDATION",
        "ALTER TABLE t REMOVE PARTITIONING",
        "ALTER TABLE t CHARACTER SET latin1",
        "ALTER TABLE t DROP CHECK c, DROP FOREIGN KEY f, DROP CONSTRAINT any_name",
        "CREATE INDEX i ON t (name(3)) ALGORITHM = INPLACE",
        "DROP INDEX size ON t",
        "CREATE TABLE IF NOT EXISTS t (nothing at all)",
        "TRUNCATE t",
        "ALTER DATABASE shop CHARACTER SET latin1",
        "ALTER TABLE t",
    ],
)
def test_a_statement_that_changes_neither_columns_nor_key_leaves_the_shape(sql: str) -> None:
    assert behind(sql) == _UNCHANGED


@pytest.mark.parametrize(
    ("sql", "why"),
    [
        ("ALTER TABLE t ADD c INT SOMETHING", "'SOMETHING' in the definition of the column c"),
        ("ALTER TABLE t ADD c NEWTYPE", "'NEWTYPE' is not known"),
        ("ALTER TABLE t DO SOMETHING", "'DO' is not understood"),
        ("ALTER TABLE t ADD c INT, DROP missing", "no 'missing'"),
        ("ALTER TABLE t ADD c INT) SELECT 1", "not understood"),
        ("ALTER TABLE t ADD c ENUM(x'ff')", "not understood"),
        ("ALTER TABLE t CONVERT TO CHARACTER SET DEFAULT", "'DEFAULT' is not known"),
        ("ALTER TABLE t CONVERT TO CHARACTER SET ucs2", "may be damaged"),
        ("ALTER TABLE t MODIFY size ENUM('größe') CHARSET latin1, CONVERT TO CHARSET ascii", "größe"),
        ("ALTER TABLE t DROP id, ADD id INT", "dropped and added"),
        ("ALTER TABLE t CHANGE name `😀` INT", "does not keep"),
        ("ALTER TABLE t ADD c CHAR CHARSET klingon", "'klingon' is not known"),
        ("ALTER TABLE t ADD c INT AS (1 */* 2) FIRST, DROP id, ADD d INT AS (1 */ 2)", "not understood"),
        ("ALTER TABLE t ADD c INT COMMENT 'open", "not understood"),
        ("ALTER TABLE t DROP INDEX unknown", "no index 'unknown'"),
        ("CREATE TABLE t (a INT)", "is created nevertheless"),
    ],
)
def test_a_statement_that_is_not_understood_is_not_followed(sql: str, why: str) -> None:
    assert why in lost(sql)


def test_literals_beyond_ascii_are_damaged_by_the_conversion_of_their_table() -> None:
    known = run("ALTER TABLE t MODIFY size ENUM('größe') CHARACTER SET latin1").known
    assert "may be damaged" in lost("ALTER TABLE t CONVERT TO CHARACTER SET utf8mb4", known=known)


def test_a_name_that_the_server_chose_and_that_is_not_certain_is_not_guessed() -> None:
    # An index for a foreign key goes away where a unique one serves: the new key is `size` or `size_2`.
    known = run("ALTER TABLE t ADD UNIQUE (size)").known
    assert "not certain" in lost("ALTER TABLE t DROP INDEX size", known=known)
    assert behind("ALTER TABLE t DROP INDEX name", known=known) == _UNCHANGED


@pytest.mark.parametrize(
    ("sql", "mode", "expected"),
    [
        ('ALTER TABLE t ADD "c" INT', ANSI_QUOTES, "c int"),
        ("ALTER TABLE t COMMENT 'x\\', ADD c INT", NO_BACKSLASH_ESCAPES, "c int"),
        ("ALTER TABLE t ADD c REAL", 1, "c float"),
        ("ALTER TABLE t ADD c REAL", 0, "c double"),
    ],
)
def test_the_sql_mode_decides_what_a_text_means(sql: str, mode: int, expected: str) -> None:
    assert behind(sql, session=replace(_SESSION, sql_mode=mode)) == f"{_ALL} | {expected} | by id"


def test_settings_that_are_not_known_are_not_guessed() -> None:
    unknown = Session("shop", None, "utf8mb4", "", "", None)
    assert "sql_mode" in lost("ALTER TABLE t ADD c REAL", session=unknown)
    assert "sql_mode" in lost("ALTER TABLE t COMMENT '\\\\'", session=unknown)
    assert "explicit_defaults" in lost("ALTER TABLE t ADD c TIMESTAMP", session=unknown)
    assert "character set" in lost("ALTER TABLE t ADD c ENUM('größe')", session=unknown)
    assert "binary" in lost("ALTER TABLE t ADD größe INT", session=replace(_SESSION, client="binary"))
    assert behind("ALTER TABLE t ADD c TIMESTAMP NULL", session=unknown) == f"{_ALL} | c timestamp | by id"


def test_a_timestamp_is_not_null_where_defaults_are_not_explicit() -> None:
    session = replace(_SESSION, explicit_timestamps=False)
    assert behind("ALTER TABLE t ADD c TIMESTAMP", session=session) == f"{_ALL} | c timestamp! | by id"


def test_tables_that_swap_their_names_swap_their_definitions() -> None:
    known = run("CREATE TABLE u (a INT)").known
    followed = run("RENAME TABLE t TO x, u TO t, x TO u", known=known)
    assert shown(followed.known.tables[_T]) == "a int | no key"
    assert shown(followed.known.tables[_U]) == _UNCHANGED
    assert followed.gone == {TableId("shop", "x")}
    assert followed.changed == {_T, _U}


def test_a_table_renamed_into_a_known_name_from_an_unknown_one_is_not_known() -> None:
    followed = run("RENAME TABLE t TO u, other TO t")
    assert list(followed.lost) == [_T]
    assert "shop.other" in followed.lost[_T]
    assert shown(followed.known.tables[_U]) == _UNCHANGED


def test_an_online_schema_change_is_followed_through_its_copy() -> None:
    known = run("CREATE TABLE `_t_gho` LIKE t").known
    known = run("ALTER TABLE shop._t_gho ADD c INT AFTER id, DROP name", known=known).known
    followed = run("RENAME TABLE shop.t TO _t_del, _t_gho TO t", known=known)
    assert shown(followed.known.tables[_T]) == "id int! | c int | size enum(S,M)! latin1 | by id"


def test_tables_are_created_with_the_character_set_of_their_own_database() -> None:
    followed = run("CREATE TABLE old.a (c CHAR(2), `d` TEXT CHARACTER SET utf8mb4, KEY (c), PRIMARY KEY (d(5)))")
    assert shown(followed.known.tables[TableId("old", "a")]) == "c char(2) latin1 | d text! utf8mb4 | by d"
    assert "database is not known" in next(iter(run("CREATE TABLE unknown.a (c CHAR)").lost.values()))
    assert (
        behind("CREATE TABLE unknown.a (c CHAR) COLLATE=latin1_bin", TableId("unknown", "a"))
        == "c char(1) latin1 | no key"
    )


def test_a_table_made_of_a_query_is_followed_from_the_columns_in_the_log() -> None:
    sql = (
        "CREATE TABLE `u` (\n  `a` int NOT NULL DEFAULT '0',\n  `b` varchar(1) NOT NULL DEFAULT ''\n) START TRANSACTION"
    )
    assert behind(sql, _U) == "a int! | b varchar(4)! utf8mb4 | no key"
    assert "not understood" in next(iter(run("CREATE TABLE u (a INT) SELECT 1 b").lost.values()))
    assert "not understood" in next(
        iter(run("CREATE TABLE u (a INT) PARTITION BY HASH (a) (SELECT 1 b)").lost.values())
    )


@pytest.mark.parametrize("sql", ["CREATE TABLE IF NOT EXISTS u (a INT)", "CREATE TABLE IF NOT EXISTS u LIKE t"])
def test_create_if_not_exists_is_followed_only_if_its_event_has_an_xid(sql: str) -> None:
    followed = run(sql, absent=lambda table: table == _U)
    assert "may have been there" in followed.lost[_U]
    assert _U not in followed.known.tables
    assert behind(sql, _U, has_xid=True) in ("a int | no key", _UNCHANGED)


def test_a_known_table_that_create_if_not_exists_makes_again_is_not_known() -> None:
    assert "is created nevertheless" in lost("CREATE TABLE IF NOT EXISTS t (a INT)", has_xid=True)


def test_create_if_not_exists_select_is_followed_only_if_the_table_is_surely_absent() -> None:
    sql = "CREATE TABLE IF NOT EXISTS u (a INT) START TRANSACTION"
    assert "may have been there" in run(sql, in_transaction=True).lost[_U]
    assert behind(sql, _U, in_transaction=True, absent=lambda table: table == _U) == "a int | no key"


def test_a_view_that_is_renamed_carries_no_definition() -> None:
    followed = run("RENAME TABLE t TO old, v TO t")  # v is a view
    assert list(followed.lost) == [_T]
    assert shown(run("CREATE TABLE t (a INT)", known=followed.known).known.tables[_T]) == "a int | no key"


def test_a_table_that_is_dropped_and_created_again_is_the_new_one() -> None:
    followed = run("DROP TABLE IF EXISTS missing, t CASCADE")
    assert followed.gone == {_T, TableId("shop", "missing")}
    assert behind("CREATE TABLE t (a INT KEY)", known=followed.known) == "a int! | by a"


def test_a_dropped_database_takes_its_tables_along() -> None:
    followed = run("DROP DATABASE shop")
    assert not followed.known.tables
    assert followed.gone == {_T}
    assert "shop" not in followed.known.databases


def test_databases_change_the_character_set_of_tables_to_come() -> None:
    assert run("ALTER SCHEMA COLLATE latin1_bin").known.databases["shop"] == "latin1"
    assert run("CREATE DATABASE new", session=replace(_SESSION, server="gbk")).known.databases["new"] == "gbk"
    assert run("CREATE DATABASE new DEFAULT CHARACTER SET = ucs2").known.databases["new"] == "ucs2"


def test_a_database_that_may_have_been_there_keeps_its_character_set() -> None:
    create = "CREATE DATABASE IF NOT EXISTS new CHARACTER SET latin1"
    known = Definitions({}, {"new": "gbk"})
    assert run(create, known=known).known == known
    assert run(create, known=Definitions()).known == Definitions()
    dropped = run("DROP DATABASE new", known=known).known
    assert run(create, known=dropped, has_xid=True).known.databases["new"] == "latin1"
    assert run("CREATE DATABASE IF NOT EXISTS new", known=dropped, has_xid=True).known.databases["new"] == "utf8mb4"
    unknown = run("ALTER DATABASE new NOVELTY", known=known).known
    assert not run(create, known=unknown).known.databases["new"]


@pytest.mark.parametrize("letter_case", [1, 2])
def test_databases_are_found_in_any_letter_case_where_the_server_does_so(letter_case: int) -> None:
    def known_behind(sql: str, known: Definitions) -> Definitions:
        change = schema_change(sql, "shop", sql_mode=0)
        assert change is not None
        return follow(replace(change, session=_SESSION), known, letter_case=letter_case).known

    known = Definitions(run("ALTER TABLE t COMMENT 'x'").known.tables, {"shop": "utf8mb4"})
    assert known_behind("ALTER DATABASE SHOP CHARACTER SET latin1", known).databases == {"shop": "latin1"}
    assert known_behind("ALTER DATABASE SHOP NOVELTY", known).databases == {"shop": ""}
    dropped = known_behind("DROP DATABASE SHOP", known)
    assert not dropped.tables
    assert not dropped.databases


def test_a_definition_without_keys_survives_statements_that_keep_columns_and_key() -> None:
    known = Definitions({_T: TableDefinition(TableShape(_T, (), ()))})
    assert _T in run("ALTER TABLE t ADD INDEX (a), COMMENT 'x'", known=known).known.tables
    assert _T not in run("ALTER TABLE t ADD UNIQUE (a)", known=known).known.tables
    assert _T not in run("ALTER TABLE t ADD a INT", known=known).known.tables
    assert _U in run("RENAME TABLE t TO u", known=known).known.tables


def test_names_are_stored_in_lower_case_where_the_server_does_that() -> None:
    assert behind("ALTER TABLE SHOP.T ADD c INT", letter_case=1) == f"{_ALL} | c int | by id"
    assert behind("ALTER TABLE T ADD c INT", letter_case=2) == f"{_ALL} | c int | by id"
    assert _T in run("ALTER TABLE T ADD c INT").known.tables  # another table


def test_a_long_statement_costs_a_small_multiple_of_its_length() -> None:
    sql = f"ALTER TABLE t ADD c INT, COMMENT '{'x' * 8_000_000}', ADD CHECK (id <> '{'y' * 1000}')"
    tracemalloc.start()
    try:
        assert behind(sql) == f"{_ALL} | c int | by id"
        assert tracemalloc.get_traced_memory()[1] < 50_000_000
    finally:
        tracemalloc.stop()
