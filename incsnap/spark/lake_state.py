"""The state of a lake's table: what `merge_into` knows of the table's columns. It is a property of the table."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace

from pyspark.sql import SparkSession

from incsnap.errors import shorten
from incsnap.tasks.described_rows import Alteration

#: Name of the property.
PROPERTY = "incsnap.merge"


@dataclass(frozen=True, slots=True)
class LakeState:
    """The content of the table's property."""

    columns: tuple[str, ...] = ()  #: columns that the stream has brought
    altered: str = ""  #: id of the last statement behind whose batch's rows the table is; "" for none
    #: the statements that the table's columns do not follow yet, as one; None if there are none
    pending: Alteration | None = None
    #: columns, in lower case, that the query is adding: the rows do not have the DEFAULT of them yet
    adding: tuple[str, ...] = ()
    #: columns, in lower case, by which rows were merged last; None: an earlier release did not record them
    keys: tuple[str, ...] | None = None

    def without(self, column: str) -> LakeState:
        """Return the state behind a step that has dropped a column."""
        return replace(self, columns=tuple(each for each in self.columns if each.lower() != column.lower()))

    def with_name(self, former: str, name: str) -> LakeState:
        """Return the state behind a step that has renamed a column."""
        columns = (*self.without(former).columns, name)
        if self.pending is None or self.pending.origins is None:
            return replace(self, columns=columns)
        origins = {each: origin for each, origin in self.pending.origins.items() if each != name.lower()}
        return replace(self, columns=columns, pending=replace(self.pending, origins=origins))

    def dump(self) -> str:
        """Return the state as hexadecimal digits.

        Spark redacts a property whose value has a word such as `url`, `token` or `password`, and columns have such
        names.
        """
        return json.dumps(asdict(self)).encode().hex()

    @classmethod
    def load(cls, text: str) -> LakeState:
        """Return the state that `dump` wrote, or an earlier release as plain JSON. Raise ValueError for other texts."""
        known = json.loads(text if text.startswith("{") else bytes.fromhex(text))
        try:
            pending = known["pending"] and Alteration(**known["pending"])
            adding = known["adding"] if "adding" in known else _new_columns(pending)
            keys = None if known.get("keys") is None else tuple(known["keys"])
            return cls(tuple(known["columns"]), known["altered"], pending, tuple(adding), keys)
        except (KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"{shorten(text)} is no state ({error!r})") from None


def _new_columns(pending: Alteration | None) -> list[str]:
    """Return the columns that an earlier release was adding. It did not record them, and filled each new column."""
    origins = None if pending is None else pending.origins
    return [name for name, former in (origins or {}).items() if former is None]


def read_state(spark: SparkSession, name: str) -> LakeState:
    """Return the state of the table `name`, an empty one if the table has none.

    Raise ValueError if the state cannot be read. To go on without a state would lose what the lake has to follow.
    """
    shown = spark.sql(f"SHOW TBLPROPERTIES {name}")
    text = next((row["value"] for row in shown.collect() if row["key"] == PROPERTY), None)
    if text is None:
        return LakeState()
    try:
        return LakeState.load(text)
    except ValueError:
        # Spark has redacted plain JSON of an earlier release. The table itself has the value.
        table = shown._jdf.queryExecution().analyzed().table().table()
        return LakeState.load(str(table.properties().get(PROPERTY)))
