"""Random definitions of columns and keys, with all types and attributes of MySQL."""

from __future__ import annotations

from collections.abc import Sequence

from tests.support.random_texts import RandomTexts

CHARSETS = ("utf8mb4", "latin1", "utf8mb3", "ucs2", "gbk", "binary", "ascii", "utf16", "cp932", "swe7")
COLLATIONS = (
    "utf8mb4_bin", "utf8mb4_0900_ai_ci", "latin1_german1_ci", "latin1_bin", "utf8_general_ci", "binary", "ucs2_bin",
)  # fmt: skip
_INTEGERS = ("tinyint", "smallint", "mediumint", "int", "integer", "bigint", "int4", "int8", "middleint")
_DECIMALS = ("decimal", "dec", "numeric", "fixed")
_FLOATS = ("float", "float(20)", "float(30)", "float(7,3)", "double", "double precision", "real", "float8")
_PLAIN = (
    "bit", "bit(1)", "bit(12)", "bit(64)", "bool", "boolean", "year", "year(4)", "date", "json", "geometry", "point",
    "linestring", "polygon", "geometrycollection", "multipoint", "vector(3)", "long varbinary", "binary", "tinyblob",
    "blob", "mediumblob", "longblob", "national char(5)", "nchar", "national varchar(9)", "nchar varying(4)",
    "nvarchar(7)", "nchar varchar(3)", "national character varying(3)", "char byte", "text byte",
)  # fmt: skip
_DEFAULTS = ("default null", "default 1", "default '1'", "default (1)", "default 1.5e0", "default -1")


class RandomColumns(RandomTexts):
    """A generator of definitions of columns and keys. `parent` is a table that foreign keys may refer to."""

    parent = ""

    def type(self) -> str:
        """Return a type, with its character set."""
        number = self.rng.choice
        length, charset = number((1, 2, 3, 10, 40, 63, 64, 255)), self._charset()
        literals = ", ".join(map(self.text, self.rng.sample(("a", "b ", "größe", "it's", "x\\y", "", "z"), 3)))
        sign = number(("", "", "unsigned", "signed", "zerofill", "unsigned zerofill"))
        return number(
            (
                number(_PLAIN),
                number(_PLAIN),
                number((f"binary({length})", f"varbinary({length})", f"blob({length})")),
                f"{number(_INTEGERS)}{number(('', '(5)'))} {sign}",
                f"{number(_DECIMALS)}{number(('', '(5)', '(9,2)', '(0)', '(65,30)'))} {sign}",
                f"{number(_FLOATS)} {sign}",
                f"{number(('time', 'datetime', 'timestamp'))}{number(('', '(0)', '(3)', '(6)'))}",
                f"{number(('char', 'character'))}{number(('', f'({length})'))} {charset}",
                f"{number(('varchar', 'char varying', 'character varying', 'varcharacter'))}({length}) {charset}",
                f"varchar({number((21845, 16384, 40000, 70000))}) {charset}",
                f"{number(('tinytext', 'text', f'text({length})', 'text(70000)', 'mediumtext', 'longtext'))} {charset}",
                f"{number(('long', 'long varchar', 'long char varying'))} {charset}",
                f"{number(('enum', 'set'))}({literals}) {charset}",
            )
        )

    def _charset(self) -> str:
        if self.some(0.5):
            return ""
        return self.rng.choice(
            (
                f"character set {self.rng.choice(CHARSETS)}",
                f"charset {self.text(self.rng.choice(CHARSETS))}",
                f"char set {self.rng.choice(CHARSETS)} binary",
                f"collate {self.rng.choice(COLLATIONS)}",
                f"character set utf8mb4 collate {self.quoted('utf8mb4_bin')}",
                *("ascii", "unicode", "binary", "binary ascii"),
            )
        )

    def column(self, name: str) -> str:
        """Return the definition of a column of that name."""
        if self.some(0.02):
            return self.join(self.quoted(name), self.rng.choice(("serial", "bigint serial default value")))
        kind, attributes = self.type(), []
        if self.some(0.1):
            expression = self.rng.choice(("(1)", "('x')", "(2 + 2)"))
            stored = self.rng.choice(("", "virtual", "stored"))
            attributes.append(f"{self.rng.choice(('generated always as', 'as'))} {expression} {stored}")
        elif self.some(0.2):
            attributes.append(self.rng.choice(_DEFAULTS))
        elif self.some(0.03):
            attributes.append("auto_increment")
        elif kind.startswith(("datetime ", "timestamp ", "datetime(0)", "timestamp(0)")) and self.some(0.3):
            attributes.append("default current_timestamp on update now()")
        constraint = self.quoted(f"{self.new_name()}{self.rng.random()}")
        more = (
            "null", "not null", "not null", f"comment {self.text()}", "unique", "unique key", "primary key", "key",
            "invisible", "visible", "column_format dynamic", "check (1)", "storage disk",
            f"constraint {constraint} check (2 > 1) not enforced", f"references {self.parent} (id)",
        )  # fmt: skip
        attributes.extend(self.rng.sample(more, self.rng.choice((0, 0, 1, 1, 2))))
        return self.join(self.quoted(name), kind, *attributes)

    def parts(self, columns: Sequence[str]) -> str:
        """Return the columns of a key, in brackets."""
        number = min(len(columns), self.rng.choice((1, 1, 1, 2, 3)))
        parts = [
            self.any_case(name) + self.rng.choice(("", "", "", "", "(2)", "(10)", "(63)")) + self._direction()
            for name in self.rng.sample(list(columns), number)
        ]
        if self.some(0.05):
            parts.append(self.expression(()) + self._direction())
        return "(" + self.rng.choice((", ", ",")).join(parts) + ")"

    def _direction(self) -> str:
        return self.rng.choice(("", "", " asc", " desc"))

    def expression(self, names: Sequence[str]) -> str:
        """Return an expression in brackets."""
        own = [f"({self.quoted(name)} + 1)" for name in names[:2]]
        return self.rng.choice(["(1)", "((1 + 2))", f"(concat({self.text()}, ')'))", "(1 + (2 * 3))", *own])

    def key(self, columns: Sequence[str]) -> str:
        """Return a key or another constraint on some of the columns."""
        name = self.rng.choice(("", "", "", self.quoted(self.new_name())))
        constraint = self.rng.choice(("", "", "constraint", f"constraint {self.quoted(self.new_name())}"))
        using = self.rng.choice(("", "", "using btree"))
        options = self.rng.choice(("", "", "", f"comment {self.text()}", "key_block_size = 1", "visible", using))
        parts, column = self.parts(columns), self.any_case(self.rng.choice(list(columns)))
        check = f"constraint {self.quoted('c' + str(self.rng.random()))}"
        word = self.rng.choice(("key", "index"))
        forms = (
            (constraint, "primary key", using, parts, options),
            (constraint, "unique", self.rng.choice(("", word)), name, using, parts, options),
            (constraint, "unique", name, parts, options),
            (word, name, using, parts, options),
            ("fulltext", self.rng.choice(("", "key")), name, parts),
            (check, "check", self.expression(columns)),
            ("foreign key", name, f"({column}) references {self.parent} (id) on delete cascade on update no action"),
        )
        return self.join(*self.rng.choice(forms))
