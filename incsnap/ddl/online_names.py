"""The names and the traces of the tables that tools for online schema changes make.

A tool does not alter a large table. It fills an altered copy of the table and then gives the copy the table's name.
gh-ost, pt-online-schema-change and spirit are known here. Each of their tables has a name by a rule and a trace of the
tool. A name alone proves nothing: a table may really be called `_x_new`. The exceptions are the two names in
`_SIGNALS`.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from contextlib import suppress
from typing import Final

from incsnap.ddl.words import NotUnderstood, Words
from incsnap.tables import TableId

GH_OST: Final = "gh-ost"
PT_OSC: Final = "pt-online-schema-change"
SPIRIT: Final = "spirit"

#: Beginning of the names of the triggers by which pt-online-schema-change follows a table.
TRIGGERS: Final = "pt_osc_"
#: Most characters of a name. The tools cut longer names. gh-ost and spirit count bytes.
_LONGEST = 64
#: Traces of tables that are no copies: the form of the name, the text in the table's definition, and the tool.
_LOGS = (
    (r"_.+_ghc", "gh-ost changelog", GH_OST),
    (r"_.+_ghk", "gh_ost_chk_id", GH_OST),
    (r"_.+_del", "ghost-cut-over-sentry", GH_OST),
    (r"_.+_chkpnt|_spirit_(?:(?:move|sync)_)?checkpoint", "copier_watermark", SPIRIT),
)
#: spirit's checkpoint of a run that alters several tables.
_COMMON_CHECKPOINT = "_spirit_checkpoint"
#: Tables by which spirit and a person signal to each other. spirit asks for the name alone.
_SIGNALS = ("_spirit_sentinel", "_spirit_move_revert")
#: The tool that makes a copy by CREATE TABLE ... LIKE, by the end of the copy's name.
_COPIES = (("gho", GH_OST), ("new", SPIRIT))
#: End of the name of a tool's own table, which has the altered table's name in it.
_OF_ONE = {GH_OST: "ghc", SPIRIT: "chkpnt"}
_ANY = re.compile(
    r"_.*_(?:gho|ghc|ghk|del|new|old|chkpnt)|_spirit_(?:(?:(?:move|sync)_)?checkpoint|sentinel|move_revert)",
    re.IGNORECASE,
)
_PT_COPY = re.compile(r"_+[^_].*_new", re.IGNORECASE)
#: Ends of the name that gh-ost gives to the altered table in a revert.
_REVERTED = ("rev_del", r"\d{14}_rev_del")
#: Ends of the name that a tool gives to the altered table when the copy takes its place.
_FORMER = {GH_OST: ("del", r"\d{14}_del", *_REVERTED), SPIRIT: ("old", r"old_\d{8}_\d{6}")}
#: The name that pt-online-schema-change gives to the table `{of}` then.
_PT_FORMER = r"(?:[A-Z0-9]{{6}}_)*_+{of}_old"
_TRIGGER = re.compile(r"(.*)_(?:del|upd|ins)", re.IGNORECASE)
#: Most characters of a trigger's name without its event.
_LONGEST_TRIGGER = 60
_LOG_OF_ONE = re.compile(r"_(.+?)(?:(?:_\d{14})?(?:_rev)?_del|_ghc|_ghk|_chkpnt)", re.IGNORECASE)
_NOT_COMPARED = re.compile(r"[^a-z0-9]+")


def looks_like_a_tools(name: str) -> bool:
    """Return True if a tool may give this name to a table of its own."""
    return _ANY.fullmatch(name) is not None


def log_trace(name: str, sql: str) -> tuple[str, str] | None:
    """Return the tool and the trace of a table that is no copy, from its name and its CREATE TABLE; None for another
    table.

    >>> log_trace("_t_ghc", "CREATE TABLE _t_ghc (id INT) COMMENT='gh-ost changelog'")
    ('gh-ost', "'gh-ost changelog' in its definition")
    """
    if name.lower() in _SIGNALS:
        return SPIRIT, "its name"
    for form, text, tool in _LOGS:
        if re.fullmatch(form, name, re.IGNORECASE) and text in sql:
            return tool, f"{text!r} in its definition"
    return None


def copy_tool(name: str, of: str, sql: str) -> str:
    """Return the tool that may have made the table `name` by CREATE TABLE ... LIKE `of`; "" if its name is none of a
    tool's copy.

    gh-ost may be told to derive the names of its tables from another name. Its comment in `sql` is enough then.
    """
    for suffix, tool in _COPIES:
        if name.lower().endswith(f"_{suffix}") and (_is_of(name, of, suffix) or (tool == GH_OST and is_by_gh_ost(sql))):
            return tool
    return ""


def confirms(log: str, tool: str, of: str) -> bool:
    """Return True if the table `log` of `tool` proves by its name that the tool alters the table `of`."""
    return tool in _OF_ONE and _is_of(log, of, _OF_ONE[tool])


def altered_by_name(log: str) -> str:
    """Return the name of the altered table that the name of `log` has in it; "" if it has none. `log` is a tool's table
    that is no copy.

    >>> altered_by_name("_orders_ghc"), altered_by_name("_orders_rev_del"), altered_by_name("_spirit_checkpoint")
    ('orders', 'orders', '')
    """
    match = _LOG_OF_ONE.fullmatch(log)
    return match[1] if match is not None else ""


def ghost_beside(log: str) -> str:
    """Return the name, in lower case, of the copy that belongs to gh-ost's changelog table `log`; "" for another table.

    >>> ghost_beside("_m42_ghc")
    '_m42_gho'
    """
    name = log.lower()
    return f"{name[: -len('ghc')]}gho" if name.endswith("_ghc") else ""


def is_common_checkpoint(log: str) -> bool:
    """Return True if the table `log` has spirit's checkpoint of a run that alters several tables.

    The table's name does not tell which tables these are.
    """
    return log.lower() == _COMMON_CHECKPOINT


def altered_by(statements: str, database: str) -> frozenset[str]:
    """Return the tables that these statements alter, as `TableId.folded` gives them.

    `statements`: what spirit was asked to do, as its checkpoint has them. Other statements than ALTER TABLE and CREATE
    INDEX are left out. `database`: for names without a database.

    >>> sorted(altered_by("ALTER TABLE t ADD n INT; CREATE INDEX i ON s.u (n)", "shop"))
    ['s.u', 'shop.t']
    """
    words, is_first = Words(statements, database, None), True
    altered: set[str] = set()
    with suppress(NotUnderstood):
        while not words.at_end:
            word = words.take()
            if is_first and word == "ALTER" and words.skip("TABLE"):
                altered.add(words.table().folded)
            elif is_first and word == "CREATE":
                words.skip_past("ON")
                altered.add(words.table().folded)
            is_first = word == ";"
    return frozenset(altered)


def _is_of(name: str, of: str, suffix: str) -> bool:
    """Return True if `name` is made of the name `of` and `suffix`.

    A long name is cut before the suffix, by characters or by bytes.
    """
    length, whole = _LONGEST - len(suffix) - 1, f"_{of}"
    cut = (whole[:length], whole.encode()[:length].decode(errors="ignore"))
    return name.lower() in {f"{each}_{suffix}".lower() for each in cut}


def _endings(name: str, forms: Collection[str]) -> Iterator[str]:
    """Yield the ends of the name that have one of the forms, without the `_` before."""
    for form in forms:
        if match := re.fullmatch(rf"_.+_({form})", name, re.IGNORECASE):
            yield match[1]


def is_by_gh_ost(sql: str) -> bool:
    """Return True if the statement has the comment that gh-ost writes into each of its statements."""
    return "/* gh-ost */" in sql


def may_be_pt_copy(name: str) -> bool:
    """Return True if a copy of pt-online-schema-change may have this name."""
    return _PT_COPY.fullmatch(name) is not None or (name.startswith("_") and len(name) == _LONGEST)


def altered_by_pt(copy: TableId) -> Iterator[TableId]:
    """Yield the tables of which `copy` is the copy by the names that pt-online-schema-change gives.

    The tool puts one `_` before the table's name, or more if that name is taken. The table's name may begin with `_`.
    """
    name = copy.table[: -len("_new")] if copy.table.lower().endswith("_new") else copy.table
    while name.startswith("_") and len(name) > 1:
        name = name[1:]
        yield TableId(copy.database, name)


def is_trigger_of(name: str, table: TableId) -> bool:
    """Return True if one of the three triggers by which pt-online-schema-change follows `table` may have this name.

    The tool writes `_` for what is no letter or digit. A letter beyond ASCII is one to Perl, or several bytes that are
    none, so only ASCII is compared.

    >>> is_trigger_of("pt_osc_shop_gr__n_del", TableId("shop", "gr\u00fcn"))
    True
    >>> is_trigger_of("pt_osc_shop_orders_items_del", TableId("shop", "orders"))
    False
    """
    match = _TRIGGER.fullmatch(name)
    if match is None:
        return False
    whole = _NOT_COMPARED.sub("", f"{TRIGGERS}{table.database}_{table.table}".lower())
    part = _NOT_COMPARED.sub("", match[1].lower())
    return part == whole or (len(match[1]) == _LONGEST_TRIGGER and whole.startswith(part))


def is_former_name(name: str, of: str, tool: str, bases: Collection[str] = ()) -> bool:
    """Return True if `tool` gives this name to the table `of` when the copy takes its place.

    `bases`: other names from which gh-ost may derive the names of its tables (`derived_from`).
    """
    if len(name) == _LONGEST and name.lstrip("_").lower().startswith(of.lstrip("_").lower()[:32]):
        return True
    if tool == PT_OSC:
        return re.fullmatch(_PT_FORMER.format(of=re.escape(of)), name, re.IGNORECASE) is not None
    return _is_of_any(name, (of, *bases), _FORMER[tool])


def is_revert_name(name: str, of: str, bases: Collection[str] = ()) -> bool:
    """Return True if gh-ost gives this name to the table `of` when it reverts an earlier run.

    `bases`: as in `is_former_name`.
    """
    return _is_of_any(name, (of, *bases), _REVERTED)


def _is_of_any(name: str, bases: Collection[str], forms: Collection[str]) -> bool:
    return any(_is_of(name, base, ending) for ending in _endings(name, forms) for base in bases)


def derived_from(name: str) -> set[str]:
    """Return the names from which gh-ost may have derived the name of its table `name`.

    gh-ost may be told to derive them from another name than that of the altered table (`--force-table-names`).

    >>> sorted(derived_from("_m42_rev_del"))
    ['m42', 'm42_rev']
    """
    return {name[1 : -len(ending) - 1] for ending in _endings(name, ("gho", "ghc", *_FORMER[GH_OST]))}
