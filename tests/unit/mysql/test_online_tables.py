"""Tests of the tables of tools that a job finds on a server at its start."""

from __future__ import annotations

import logging
from typing import Any

import pytest
from pymysql.constants import ER

from incsnap.ddl.online_ddl import after_statement
from incsnap.ddl.online_tables import OnlineTables
from incsnap.events import UNKNOWN
from incsnap.mysql import granted
from incsnap.mysql import online_tables as module
from incsnap.mysql.session import QueryRefusedError
from incsnap.tables import TableId

_CHECKPOINT = "id,copier_watermark,statement"
_CHANGELOG = "gh-ost changelog"


class Server:
    """A server that answers the questions about its tables.

    `logs`: comment and columns of tables that a tool may have made for itself. `statement`: the only row of spirit's
    common checkpoint, None for no row. `refuses`: number of the error for who reads that row. `triggers`: the rows of
    `information_schema.TRIGGERS`. `grants`: the rights of the user, None if they are not shown. `role`: active roles.
    """

    def __init__(
        self,
        tables: str,
        logs: dict[str, tuple[str, str]],
        statement: str | None = None,
        refuses: int = 0,
        triggers: tuple[tuple[str, ...], ...] = (),
        grants: tuple[str, ...] | None = ("GRANT ALL PRIVILEGES ON *.* TO `cdc`@`%`",),
        role: str = "NONE",
    ) -> None:
        self._tables = [TableId("shop", name) for name in tables.split()]
        self._logs, self._statement, self._refuses, self._triggers = logs, statement, refuses, triggers
        self._grants, self._role = grants, role

    def query(self, _: object, sql: str, arguments: Any = None) -> tuple[tuple[Any, ...], ...]:
        """Answer one of the questions of `online_tables`."""
        if "information_schema.TRIGGERS" in sql:
            return self._triggers
        if sql == "SELECT CURRENT_ROLE()":
            return ((self._role,),)
        if sql.startswith("SHOW GRANTS"):
            if self._grants is None:
                raise QueryRefusedError("no", ER.ACCESS_DENIED_ERROR)
            assert sql.endswith("CURRENT_USER()" if self._role == "NONE" else f" USING {self._role}"), sql
            return tuple((grant,) for grant in self._grants)
        if "information_schema.TABLES" in sql:
            return tuple((database, name, *self._logs.get(name, ("", "id"))) for database, name in arguments[0])
        assert sql.startswith("SELECT statement FROM `shop`.`_spirit_checkpoint`"), sql
        if self._refuses:
            raise QueryRefusedError("SELECT command denied", self._refuses)
        return ((self._statement,),) if self._statement is not None else ()

    def online(self, monkeypatch: pytest.MonkeyPatch) -> OnlineTables:
        """Return the tables of tools that a job finds."""
        monkeypatch.setattr(module, "query", self.query)
        monkeypatch.setattr(granted, "query", self.query)
        connection: Any = None
        return module.online_tables(connection, self._tables)


def _names(online: OnlineTables) -> set[str]:
    return {each.table.table for each in online.certain()}


_SPIRIT = "t _t_new x _x_new _spirit_checkpoint"


@pytest.mark.parametrize(
    "statement",
    [
        "ALTER TABLE t ADD n INT; ALTER TABLE u ADD n INT",
        "alter table `shop`.`T` COMMENT ';'",
        "CREATE INDEX i ON t (a)",
    ],
)
def test_a_copy_beside_spirits_common_checkpoint_is_one_if_the_checkpoint_names_its_table(
    statement: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    online = Server(_SPIRIT, {"_spirit_checkpoint": ("", _CHECKPOINT)}, statement).online(monkeypatch)
    assert _names(online) == {"_t_new", "_spirit_checkpoint"}


@pytest.mark.parametrize(
    "statement", [None, "", "ALTER TABLE y ADD x INT", "ALTER TABLE other.x ADD n INT", "ALTER TABLE y COMMENT '; x'"]
)
def test_a_table_that_spirits_common_checkpoint_does_not_name_is_captured(
    statement: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    online = Server(_SPIRIT, {"_spirit_checkpoint": ("", _CHECKPOINT)}, statement).online(monkeypatch)
    assert _names(online) == {"_spirit_checkpoint"}


@pytest.mark.parametrize(("code", "warns"), [(ER.TABLEACCESS_DENIED_ERROR, True), (ER.NO_SUCH_TABLE, False)])
def test_a_common_checkpoint_that_cannot_be_read_proves_nothing(
    code: int, warns: bool, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    server = Server(_SPIRIT, {"_spirit_checkpoint": ("", _CHECKPOINT)}, "ALTER TABLE t ADD n INT", code)
    with caplog.at_level(logging.WARNING):
        assert _names(server.online(monkeypatch)) == {"_spirit_checkpoint"}
    assert ("shop._spirit_checkpoint cannot be read" in caplog.text) is warns


def test_spirits_checkpoint_of_one_table_proves_its_copy(monkeypatch: pytest.MonkeyPatch) -> None:
    online = Server("t _t_new x _x_new _t_chkpnt", {"_t_chkpnt": ("", _CHECKPOINT)}).online(monkeypatch)
    assert _names(online) == {"_t_new", "_t_chkpnt"}


def test_a_copy_of_gh_ost_is_known_beside_its_changelog_also_under_a_name_of_its_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    logs = {"_t_ghc": (_CHANGELOG, "id"), "_m42_ghc": (_CHANGELOG, "id")}
    online = Server("t _t_gho _t_ghc _m42_gho _m42_ghc _x_gho x _y_gho _y_ghc", logs).online(monkeypatch)
    assert _names(online) == {"_t_gho", "_t_ghc", "_m42_gho", "_m42_ghc"}
    of = {each.table.table: each.of for each in online.certain()}
    assert of["_t_gho"] == TableId("shop", "t")
    assert of["_m42_gho"] is None
    # The altered table is not known, so the swap is an ordinary RENAME.
    swap = "rename /* gh-ost */ table `shop`.`t` to `shop`.`_m42_del`, `shop`.`_m42_gho` to `shop`.`t`"
    _, step = after_statement(online, swap, "shop")
    assert step is not None
    assert not step.swaps
    assert not step.hides(TableId("shop", "t"))
    assert step.hides(TableId("shop", "_m42_gho"))


@pytest.mark.parametrize(("copy", "written"), [("_u_new", "`Shop`.`_U_new`"), ("_u`_new", "`shop`.`_u``_new`")])
def test_a_copy_is_known_whatever_the_spelling_of_the_trigger_that_fills_it(
    copy: str, written: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    trigger = ("pt_osc_shop_u_ins", "shop", "u", f"REPLACE INTO {written} (`id`) VALUES (NEW.`id`)")
    online = Server(f"u {copy}", {}, triggers=(trigger,)).online(monkeypatch)
    assert _names(online) == {copy}
    assert [each.table for each in online.certain()] == [TableId("shop", copy)]


_WRITES = "BEGIN REPLACE INTO `shop`.`_u_new` (`id`) VALUES (NEW.`id`); END"


@pytest.mark.parametrize(
    ("copy", "swap"),
    [
        ("_t_gho", "rename /* gh-ost */ table t to _t_del, _t_gho to t"),
        ("_s_new", "RENAME TABLE s TO _s_old, _s_new TO s"),
        ("_u_new", "RENAME TABLE u TO _u_old, _u_new TO u"),
    ],
    ids=["gh-ost", "spirit", "pt-online-schema-change"],
)
def test_the_alteration_of_a_copy_that_was_found_is_unknown_also_behind_a_further_one(
    copy: str, swap: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    logs = {"_t_ghc": (_CHANGELOG, "id"), "_s_chkpnt": ("", _CHECKPOINT)}
    triggers = (("pt_osc_shop_u_ins", "shop", "u", _WRITES),)
    server = Server("t _t_gho _t_ghc s _s_new _s_chkpnt u _u_new", logs, triggers=triggers)
    online, _ = after_statement(server.online(monkeypatch), f"ALTER TABLE {copy} ADD c INT", "shop")
    _, step = after_statement(online, swap, "shop")
    assert step is not None
    assert [statements for _, _, statements in step.swaps] == [UNKNOWN]


_SELECT = "GRANT SELECT ON `shop`.* TO `cdc`@`%`"


@pytest.mark.parametrize(
    ("grants", "warns"),
    [
        ((_SELECT,), True),
        ((_SELECT, "GRANT TRIGGER ON `other`.* TO `cdc`@`%`", "GRANT TRIGGER ON `shop`.`u` TO `cdc`@`%`"), True),
        ((_SELECT, "GRANT `TRIGGER`@`%` TO `cdc`@`%`", "GRANT SELECT (`trigger`) ON `shop`.`t` TO `cdc`@`%`"), True),
        (("GRANT SELECT, TRIGGER ON `shop`.* TO `cdc`@`%`",), False),
        (("GRANT SELECT, TRIGGER ON `sh_p%`.* TO `cdc`@`%`",), False),
        (("GRANT TRIGGER ON `shop\\_%`.* TO `cdc`@`%`",), True),
        ((_SELECT, "GRANT TRIGGER ON `shop`.`t` TO `cdc`@`%`"), False),
        (("GRANT SELECT, TRIGGER, EVENT ON *.* TO `cdc`@`%`",), False),
        (("GRANT ALL PRIVILEGES ON `shop`.* TO `cdc`@`%`",), False),
        (None, False),
    ],
)
def test_a_table_that_may_be_a_copy_is_named_if_triggers_are_hidden(
    grants: tuple[str, ...] | None, warns: bool, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    for role in ("NONE", "`r`@`%`,`s`@`%`"):
        caplog.clear()
        with caplog.at_level(logging.WARNING):
            assert not _names(Server("t _t_new", {}, grants=grants, role=role).online(monkeypatch))
        assert (
            "shop._t_new may be filled by pt-online-schema-change" in caplog.text
            and "may not see triggers of shop.t." in caplog.text
        ) is warns


def test_hidden_triggers_matter_only_beside_a_table_that_may_be_a_copy(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    server = Server("t u _x_new s _s_new _s_chkpnt", {"_s_chkpnt": ("", _CHECKPOINT)}, grants=(_SELECT,))
    with caplog.at_level(logging.WARNING):
        assert _names(server.online(monkeypatch)) == {"_s_new", "_s_chkpnt"}
    assert not caplog.text
