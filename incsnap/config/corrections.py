"""The changes that make a connector's file start: older names and values of Debezium, and settings that the worker had.

Each change has a reason for the user. `rewriting` applies the changes to the text of the file.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, replace

from incsnap.config import confluent_cloud
from incsnap.config.names import is_important, unused_names
from incsnap.config.older_names import (
    FIRST_DEFAULTS,
    LISTS,
    OF_DELETIONS,
    OF_NULLS,
    OPERATION_HEADER,
    OUTBOX_OPTIONS,
    SOURCE_FIELDS,
    TOMBSTONE_HANDLING,
    TOMBSTONES,
    TRANSFORMS,
    VALUES,
    present_name,
    tombstone_handling,
)
from incsnap.config.patterns import split_list
from incsnap.config.references import is_withheld, placeholder, shown_value, variable_for, with_variables
from incsnap.config.secrets import is_secret, without_salt
from incsnap.config.without_effect import reason_of
from signals.regex import exact_name

_BROKERS, _HISTORY_BROKERS = "bootstrap.servers", "schema.history.internal.kafka.bootstrap.servers"
_SERVER_ID = "database.server.id"
_OWN_BROKERS = "producer.override.bootstrap.servers"
_HISTORY_PRODUCER = "schema.history.internal.producer."
_SIGNAL_CONSUMER, _SIGNAL_BROKERS = "signal.consumer.", "signal.kafka.bootstrap.servers"
#: Beginnings of a client's settings that a login to Kafka needs.
_LOGINS = ("security.protocol", "sasl.", "ssl.")
_EVENT_ROUTER = "io.debezium.transforms.outbox.EventRouter"
_UNWRAP = "io.debezium.transforms.ExtractNewRecordState"
_KEYS, _OVERRIDES = "message.key.columns", "snapshot.select.statement.overrides"
_TABLE_LISTS = ("table.include.list", "table.exclude.list", "snapshot.include.collection.list", _OVERRIDES)
_COLUMN_LISTS = ("column.include.list", "column.exclude.list", "column.mask.", "column.truncate.")


@dataclass(frozen=True, slots=True)
class Change:
    """A change of one setting of a file."""

    old: str  #: name in the file; "": the setting is added
    new: str  #: name in the corrected file; "": the setting is removed
    value: str | None  #: value in the corrected file; None: as before
    reason: str  #: a sentence for the user
    hidden: bool = False  #: whether `value` must not be shown

    def __str__(self) -> str:
        """Return the change as a line for people, without secrets."""
        old, new = without_salt(self.old), without_salt(self.new)
        value = "" if self.value is None else f"={shown_value(self.value, hidden=self.hidden)}"
        if not new:
            return f"{old}: removed. {self.reason}"
        if not old:
            return f"{new}{value}: added. {self.reason}"
        return f"{old} -> {new}{value}. {self.reason}"


def corrections(
    values: Mapping[str, str],
    inherited: Mapping[str, str],
    outside: Collection[str] = (),
    hides: Callable[[str], bool] = is_secret,
) -> tuple[Change, ...]:
    """Return the changes that the settings `values` of a connector's file need, in the order of the file.

    `inherited` are settings that the connector takes from a worker's file. `outside` are names in `values` that the
    document has beside its settings. They stay, and a setting that replaces one is added. `hides` returns True for the
    name of a setting whose value must not be shown.
    """
    transforms = _changed_options(values)
    only_managed, of_managed = confluent_cloud.removed(values), confluent_cloud.replaced(values)
    changes = []
    for name, value in values.items():
        if name in only_managed:
            changes.append(Change(name, "", None, "Only Confluent Cloud's managed connector has it."))
            continue
        if name in of_managed:
            change = Change(name, name, *of_managed[name])
        elif name in transforms:
            change = transforms[name]
        else:
            moves = name == _OWN_BROKERS and _BROKERS not in values
            new, reasons = _BROKERS if moves else _name_of(name, values), []
            if new != name and new in values:
                if values[new].strip() or not value.strip():
                    changes.append(Change(name, "", None, f"{new} is set too, and only {new} is read."))
                    continue
                changes.append(Change(new, "", None, f"It is empty, and {name} is not."))
            if moves:
                reasons.append("Kafka Connect sends records to these brokers.")
            elif new != name:
                older = present_name(name) == new
                reasons.append(f"Debezium 3 calls it {new}." if older else "It is misspelt: Debezium ignores it.")
            change = Change(name, new, VALUES.get(new, {}).get(value), " ".join(reasons))
            if change.value is not None:
                change = Change(name, new, change.value, " ".join([*reasons, f"{value} is its older name."]))
            if new == _SERVER_ID and (number := _server_id(value)):
                change = Change(name, new, number, "A server's id has 32 bits. This is the number that MySQL has seen.")
        if change.new not in ("", name) and any(each.new == change.new for each in changes):
            changes.append(Change(name, "", None, f"{change.new} is set too, by another older name."))
            continue
        change = _with_database(_with_reference(change, value, values), value, values)
        if name in outside:
            if change.value is not None and (name == "connector.class" or not reason_of(name)):
                changes.append(replace(change, old=""))
        elif change.new != name or change.value is not None:
            changes.append(change)
    changes += _added(values, inherited)
    return tuple(replace(each, hidden=hides(each.old) or hides(each.new)) for each in changes)


def _server_id(value: str) -> str:
    """Return the lower 32 bits of a server's id that has more, as Debezium sends them to MySQL; "" for other values."""
    text = value.strip()
    number = int(text) if text.isascii() and text.isdecimal() else 0
    return str(number % 2**32) if number >= 2**32 and number % 2**32 else ""


def _name_of(name: str, values: Mapping[str, str]) -> str:
    """Return the present name of a setting. Correct a misspelt name if no job could start with it.

    A misspelt name stays if another name in `values` means the same: an older one, or an earlier misspelt one.
    """
    present = present_name(name)
    meant = _misspelt(present)
    if not meant or any(present_name(each) == meant for each in values):
        return present
    first = next((each for each in values if _misspelt(each) == meant), name)
    return meant if first == name else present


def _misspelt(name: str) -> str:
    """Return the important setting that the unknown name `name` means, or "" if no one setting is meant."""
    names = (meant for _, meant in unused_names([name]).unknown if meant and is_important(meant))
    return next((meant for meant in names if not meant.endswith("*")), "")


def _added(values: Mapping[str, str], inherited: Mapping[str, str]) -> Iterator[Change]:
    """Yield the settings that a connector's file lacks and that can be known."""
    yield from _dropped_deletions(values)
    if confluent_cloud.is_managed(values):
        yield from (Change("", *each) for each in confluent_cloud.added(values))
        return
    if _is_first(values):
        for name, value in FIRST_DEFAULTS.items():
            if not values.get(name, "").strip():
                yield Change(name if name in values else "", name, value, "It was the default of Debezium 1.")
    brokers = next((value for name, value in values.items() if present_name(name) == _HISTORY_BROKERS), "")
    own = values.get(_BROKERS) or values.get(_OWN_BROKERS)
    if brokers and not own and not inherited.get(_BROKERS):
        reason = f"The worker had it. The value is that of {_HISTORY_BROKERS}: check that records belong there too."
        yield Change("", _BROKERS, brokers, reason)
    login = _history_login(values)
    # The worker's login to Kafka is mostly that of the schema history.
    if not inherited and (own or brokers) == brokers:
        for name, value in login.items():
            given = (f"producer.{name}", f"producer.override.{name}")
            if not any(each in values for each in given):
                yield Change("", given[0], value, "The worker had it. This is the login of the schema history.")
    asked = values.get(_SIGNAL_BROKERS) or own or inherited.get(_BROKERS) or brokers
    if asked == brokers and "kafka" in split_list(values.get("signal.enabled.channels", "")):
        if any(name.startswith(tuple(_SIGNAL_CONSUMER + each for each in _LOGINS)) for name in values):
            return
        for name, value in login.items():
            reason = "Signals come from the same brokers. This is the login of the schema history."
            yield Change("", _SIGNAL_CONSUMER + name, value, reason)


def _history_login(values: Mapping[str, str]) -> dict[str, str]:
    """Return the settings with which the producer of the schema history logs in, without their prefix."""
    names = ((present_name(name), value) for name, value in values.items())
    login = tuple(_HISTORY_PRODUCER + each for each in _LOGINS)
    return {name.removeprefix(_HISTORY_PRODUCER): value for name, value in names if name.startswith(login)}


def _dropped_deletions(values: Mapping[str, str]) -> Iterator[Change]:
    """Yield a setting for each unwrap of Debezium 1 that leaves the handling of deletions to the defaults.

    The defaults of Debezium 1 were drop.tombstones=true and delete.handling.mode=drop: no record of a deletion.
    """
    # A file of Debezium 2 or 3 may have names that were left behind, and has the prefix.
    is_of_first = any(map(_is_of_debezium_1, values)) and "topic.prefix" not in values
    for name in split_list(values.get("transforms", "")):
        start = f"transforms.{name}."
        given = values.get(f"{start}type", "").strip()
        options = (start + option for option in (*OF_DELETIONS, TOMBSTONE_HANDLING))
        if (
            _is(TRANSFORMS.get(given, given), _UNWRAP)
            and (is_of_first or given in TRANSFORMS)
            and not any(values.get(option) for option in options)
        ):
            reason = "Debezium 1 sent no record of a deletion by default. Debezium 3 sends a null."
            yield Change("", start + TOMBSTONE_HANDLING, tombstone_handling({}), reason)


def _is_first(values: Mapping[str, str]) -> bool:
    """Return True if only Debezium 1 starts with `values`. Later releases need `topic.prefix` instead of the name."""
    return "database.server.name" in values and "topic.prefix" not in values


def _is_of_debezium_1(name: str) -> bool:
    """Return True if Debezium 2 and 3 do not have the setting `name`."""
    return name in (*LISTS, "database.server.name") or name.split(".")[:2] == ["database", "history"]


def _changed_options(values: Mapping[str, str]) -> dict[str, Change]:
    """Return the changes of transforms: older classes and options. The keys are the names in the file."""
    changes: dict[str, Change] = {}
    for name in split_list(values.get("transforms", "")):
        start = f"transforms.{name}."
        given = values.get(f"{start}type", "").strip()
        class_ = TRANSFORMS.get(given, given)
        if class_ != given:
            changes[f"{start}type"] = Change(
                f"{start}type", f"{start}type", class_, "It is the present name of the class."
            )
        if _is(class_, _EVENT_ROUTER):
            for old, new in OUTBOX_OPTIONS.items():
                if start + old in values:
                    changes[start + old] = _moved(values, start + old, start + new)
        if _is(class_, _UNWRAP):
            changes |= {**_tombstones(values, start), **_additions(values, start)}
    return changes


def _is(class_: str, whole: str) -> bool:
    """Return True if `class_` names the class `whole`, with or without its package."""
    return class_ in (whole, whole.rpartition(".")[2])


def _moved(values: Mapping[str, str], old: str, new: str) -> Change:
    """Return the change of the name `old` to `new`, or its removal if `new` is given too."""
    if new in values:
        return Change(old, "", None, f"{new} is set too, and only {new} is read.")
    return Change(old, new, None, "It is the present name of the option.")


def _tombstones(values: Mapping[str, str], start: str) -> dict[str, Change]:
    """Return the changes of the older options of deletions to the one option that replaced them."""
    old = [start + option for option in OF_DELETIONS if start + option in values]
    new = start + TOMBSTONE_HANDLING
    if not old:
        return {}
    if new in values:
        return {name: Change(name, "", None, f"{new} is set too, and only {new} is read.") for name in old}
    has_tombstones = values.get(TOMBSTONES, "").strip().lower() != "false"
    mode = tombstone_handling({name.removeprefix(start): values[name] for name in old}, tombstones=has_tombstones)
    if mode is None:
        return {}
    meant = " with ".join(f"{name.removeprefix(start)}={values[name].strip()}" for name in old)
    if not has_tombstones:
        meant += f" and {TOMBSTONES}=false"
    first = Change(old[0], new, mode, f"{meant} means this. {OF_NULLS.get(mode, '')}".rstrip())
    return {
        old[0]: first,
        **{name: Change(name, "", None, f"{TOMBSTONE_HANDLING} has its meaning.") for name in old[1:]},
    }


def _additions(values: Mapping[str, str], start: str) -> dict[str, Change]:
    """Return the changes of `add.source.fields` and `operation.header` to `add.fields` and `add.headers`."""
    changes = {}
    old, new = f"{start}{SOURCE_FIELDS}", f"{start}add.fields"
    if values.get(old) and new not in values:
        # A field of the source block had no `source_` in its name then.
        fields = ",".join(f"source.{field}:{field}" for field in split_list(values[old]))
        changes[old] = Change(old, new, fields, "The fields keep their names.")
    old, new = f"{start}{OPERATION_HEADER}", f"{start}add.headers"
    if values.get(old, "").strip().lower() == "true" and new not in values:
        changes[old] = Change(old, new, "op", "The header keeps its name.")
    return changes


def _with_reference(change: Change, value: str, values: Mapping[str, str]) -> Change:
    """Return `change` with placeholders such as `${NAME}` written as `${env:NAME}`, which incsnap resolves.

    A secret of asterisks alone becomes a reference too.
    """
    text = value if change.value is None else change.value
    if is_withheld(change.new, text):
        reason = "The file has asterisks in its place. The value comes from the environment."
        return Change(change.old, change.new, variable_for(change.new), f"{change.reason} {reason}".strip())
    if not placeholder(change.new, text, values):
        return change
    reason = "The value comes from the environment."
    return Change(change.old, change.new, with_variables(text), f"{change.reason} {reason}".strip())


def _with_database(change: Change, value: str, values: Mapping[str, str]) -> Change:
    """Return `change` with the database before each table that lacks one, if the file captures one database only."""
    included = (text for name, text in values.items() if _name_of(name, values) == "database.include.list")
    databases = split_list(next(included, ""))
    database = exact_name(databases[0]) if len(databases) == 1 else None
    if not database:
        return change
    reason = f"{change.reason} A table is named with its database.".strip()
    start, _, table = change.new.rpartition(".")
    if start == _OVERRIDES and table and table in split_list(values.get(_OVERRIDES, "")):
        return Change(change.old, f"{_OVERRIDES}.{database}.{table}", change.value, reason)
    dots = 1 if change.new in (*_TABLE_LISTS, _KEYS) else 2 if change.new.startswith(_COLUMN_LISTS) else 0
    text, separator = value if change.value is None else change.value, ";" if change.new == _KEYS else ","
    listed = tuple(each.strip() for each in text.split(";")) if separator == ";" else split_list(text)
    whole = tuple(f"{database}.{each}" if _lacks_database(each, dots) else each for each in listed)
    return change if listed == whole else Change(change.old, change.new, separator.join(whole), reason)


def _lacks_database(pattern: str, dots: int) -> bool:
    """Whether a pattern is the name of a table or column, and has all parts but the database. `dots`: of a whole name.

    `message.key.columns` has the key's columns behind a colon.
    """
    exact = exact_name(pattern.partition(":")[0])
    return exact is not None and exact.count(".") == dots - 1
