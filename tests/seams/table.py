"""The table of a ledger of seams."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from tests.seams.plan import Outcome


def table(outcomes: Sequence[Outcome]) -> str:
    """Return the rounds and the hits as two Markdown tables."""
    lines = ["| round | seams | records of Debezium | of incsnap | repeated by Debezium | sent again | found | s |"]
    lines.append("|---|---|---|---|---|---|---|---|")
    hits: Counter[str] = Counter()
    for each in outcomes:
        hits += each.hits
        counts = f"{each.records['Debezium']:,} | {each.records['incsnap']:,} | {each.repeated:,} | {each.again:,}"
        verdict = "**wrong**" if each.wrong else "nothing"
        lines.append(f"| {each.name} | {each.seams} | {counts} | {verdict} | {each.seconds:.0f} |")
    lines += ["", "| kind | hits |", "|---|---|", *(f"| {kind} | {count} |" for kind, count in sorted(hits.items()))]
    return "\n".join(lines)
