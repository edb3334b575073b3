"""Tests that compare our records with those that Debezium wrote for the same statements (see README.md).

`written_json.dump` writes the JSON of both back unchanged, so equal fields in equal order are equal bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import pytest

from lab.servers import Servers
from tests.golden.avro_form import AvroForm
from tests.golden.comparison import Difference, compare, operation_of, settled
from tests.golden.configurations import CONFIGURATIONS
from tests.golden.differences import DIFFERENCES, Allowed
from tests.golden.golden_file import Form, read_golden, read_json, read_plain, whole_record
from tests.golden.ours import Stage, Topics, played, read_again, stage

pytestmark = pytest.mark.servers

_FOLDER = Path(__file__).parent
_SHOWN = 40

Outcome = Callable[[str], list[Difference]]


@pytest.fixture(scope="module")
def outcome(request: pytest.FixtureRequest, servers: Servers) -> Iterator[Outcome]:
    """Yield a function that returns all differences in a configuration. Only configurations of chosen tests are run."""
    asked = {item.callspec.params.get("name") for item in request.session.items if hasattr(item, "callspec")}
    listed = any("allowed" in item.callspec.params for item in request.session.items if hasattr(item, "callspec"))
    chosen = [each for each in CONFIGURATIONS.values() if listed or each.name in asked]
    with stage(servers) as played_on:
        reads = played(played_on, chosen)
        yield cache(lambda name: differences(played_on, name, reads[name]))


@pytest.mark.parametrize("name", CONFIGURATIONS)
def test_the_records_are_those_of_debezium(outcome: Outcome, name: str) -> None:
    unexpected = [each for each in outcome(name) if not any(allowed.takes(each) for allowed in DIFFERENCES)]
    shown = "\n".join(f"  {each}" for each in unexpected[:_SHOWN])
    assert not unexpected, f"{len(unexpected)} differences in {name}:\n{shown}"


@pytest.mark.parametrize("allowed", DIFFERENCES, ids=lambda allowed: allowed.place)
def test_a_listed_difference_still_occurs(outcome: Outcome, allowed: Allowed) -> None:
    assert any(allowed.takes(each) for name in CONFIGURATIONS for each in outcome(name)), allowed.reason


def differences(played_on: Stage, name: str, reads: Topics) -> list[Difference]:
    configuration, golden = CONFIGURATIONS[name], read_golden(_FOLDER / f"{name}.json")
    if configuration.snapshot:
        settings = played_on.settings(configuration)
        # Only topics with rows that Debezium has read can be compared.
        read = {topic for topic, records in golden.topics.items() if "r" in map(operation_of, records)}
        for table in played_on.tables():
            for topic, records in read_again(played_on, settings, table).items():
                if topic in read:
                    reads.setdefault(topic, []).extend(records)
    form: Form = read_plain if configuration.plain else read_json
    if configuration.avro:
        form = AvroForm(played_on.schemas.text)
    ours = {
        topic: [played_on.renamed(whole_record(read, form)) for read in configuration.kept(of_topic)]
        for topic, of_topic in reads.items()
        if configuration.keeps(topic)
    }
    theirs = {topic: of_topic for topic, of_topic in golden.topics.items() if topic != f"{name}.notifications"}
    transactions = configuration.transactions or f"{name}.transaction"
    return compare(name, settled(theirs, transactions=transactions), settled(ours, transactions=transactions))
