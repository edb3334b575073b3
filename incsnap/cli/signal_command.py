"""The command `incsnap signal FILE TYPE`: it sends a signal by a channel that the job listens to."""

from __future__ import annotations

from functools import partial

import click
from click.core import ParameterSource

from incsnap.cli import output
from incsnap.cli.settings_file import settings_file
from incsnap.config.job_file import JobFile
from incsnap.config.load import read
from incsnap.config.settings import Settings
from incsnap.errors import ConfigError
from incsnap.monitoring.signal_sender import send_signal
from incsnap.monitoring.signalled_tables import table_warnings
from incsnap.planner.online_ddl import online_tables_at_newest
from signals import exact_json, send
from signals.parse import SIGNALLED_LIMITS

_PLACE = "set-binlog-position"
_TYPES = ("execute-snapshot", "stop-snapshot", "pause-snapshot", "resume-snapshot", "incsnap-throttle", "log", _PLACE)

#: The types of the signals that an option belongs to. Other options that describe a signal belong to execute-snapshot.
_OF_TYPES = {
    "tables": ("execute-snapshot", "stop-snapshot"),
    "limits": ("incsnap-throttle",),
    "rows_per_second": ("incsnap-throttle",),
    "gtid_set": (_PLACE,),
    "binlog": (_PLACE,),
    "message": ("log",),
}
_OF_ALL = ("worker", "bootstrap_servers", "checkpoint_location", "channel", "name")


@click.command()
@settings_file
@click.argument("type", type=click.Choice(_TYPES))
@click.option("--table", "tables", multiple=True, metavar="DB.TABLE", help="Table or Java regex. May be repeated.")
@click.option("--condition", metavar="SQL", help="SQL condition: read only rows that match it.")
@click.option("--surrogate-key", metavar="COLUMN", help="Column whose order is used to read the tables.")
@click.option("--keys", metavar="JSON", help='Read only rows with these keys: [{"id": 5}, {"id": 7}].')
@click.option("--keys-file", metavar="PATH", help="File or folder with keys, JSON lines or Parquet.")
@click.option("--keys-topic", metavar="TOPIC", help="Kafka topic with keys.")
@click.option("--absent", type=click.Choice(["count", "delete"]), help="What becomes of a key that the table lacks.")
@click.option("--from", "first", metavar="JSON", help='Least values of columns to read: {"id": 1000}.')
@click.option("--to", "last", metavar="JSON", help='Greatest values of columns to read: {"id": 1999}.')
@click.option("--sample", metavar="1/N", help="Read one row in N.")
@click.option("--seed", type=int, help="Number that chooses the rows of a sample. Default: 0.")
@click.option("--whole-table", is_flag=True, help="Let MySQL walk through the whole table to find keys or a range.")
@click.option(
    "--limit",
    "limits",
    type=(click.Choice(list(SIGNALLED_LIMITS)), int),
    multiple=True,
    metavar="NAME NUMBER",
    help=f"Limit of incsnap-throttle; 0 removes it. May be repeated. NAME: {', '.join(SIGNALLED_LIMITS)}.",
)
@click.option("--rows-per-second", type=int, help="Same as --limit rows-per-second.")
@click.option("--gtid-set", metavar="SET", help="Place of set-binlog-position: all transactions before it.")
@click.option("--binlog", type=(str, int), metavar="FILE POSITION", help="Place of set-binlog-position.")
@click.option("--message", help="Text of a log signal. {} becomes the offset.")
@click.option(
    "--channel",
    type=click.Choice(["source", "kafka", "file"]),
    help="Default: the first channel that the job reads.",
)
@click.option("--id", "name", help="Id of the signal, for notifications. Default: a new UUID.")
@click.pass_context
def signal(
    context: click.Context,
    file: JobFile,
    worker: str | None,
    type: str,  # noqa: A002 - Debezium's word, shown as TYPE
    tables: tuple[str, ...],
    condition: str | None,
    surrogate_key: str | None,
    keys: str | None,
    keys_file: str | None,
    keys_topic: str | None,
    absent: str | None,
    first: str | None,
    last: str | None,
    sample: str | None,
    seed: int | None,
    whole_table: bool,
    limits: tuple[tuple[str, int], ...],
    rows_per_second: int | None,
    gtid_set: str | None,
    binlog: tuple[str, int] | None,
    message: str | None,
    channel: str | None,
    name: str | None,
) -> None:
    """Ask a running job for a snapshot, or stop, pause, resume or throttle it.

    `set-binlog-position` names the place at which the job's next start begins.
    """
    _refuse_idle(context, type)
    settings = read(file, worker).settings
    conditions = [(table, condition) for table in tables] if condition is not None else []
    data: dict[str, object] = {"message": message}
    if type == "incsnap-throttle":
        data = {**dict(limits), **({"rows-per-second": rows_per_second} if rows_per_second is not None else {})}
    elif type == _PLACE:
        data = {} if gtid_set is None else {"gtid_set": gtid_set}
        if binlog is not None:
            data |= {"binlog_filename": binlog[0], "binlog_position": binlog[1]}
    elif type != "log":
        choices: dict[str, object] = {
            "incsnap-keys": _json(keys, "--keys"),
            "incsnap-keys-file": keys_file,
            "incsnap-keys-topic": keys_topic,
            "incsnap-absent": absent,
            "incsnap-from": _json(first, "--from"),
            "incsnap-to": _json(last, "--to"),
            "incsnap-sample": sample,
            "incsnap-seed": seed,
            "incsnap-whole-table": whole_table or None,
        }
        rows = {field: value for field, value in choices.items() if value is not None}
        data = send.snapshot_data(tables, conditions, surrogate_key, rows)
    name = name or send.new_id()
    if tables:
        _check(settings, type, tables)
    chosen = send_signal(settings, name, type, data, channel)
    output.console().print(f"Sent {type} {name} by {chosen}.")


def _refuse_idle(context: click.Context, kind: str) -> None:
    """Raise ConfigError if an option is given that a signal of the type `kind` does not have."""
    for option in context.command.params:
        name = option.name or ""
        if not isinstance(option, click.Option) or name in _OF_ALL:
            continue
        types = _OF_TYPES.get(name, ("execute-snapshot",))
        if kind not in types and context.get_parameter_source(name) is ParameterSource.COMMANDLINE:
            raise ConfigError(
                f"{option.opts[0]} has no meaning for {kind}. The option belongs to {' and '.join(types)}",
                "Leave the option out, or name the other type.",
            )


def _json(text: str | None, option: str) -> object:
    """Return the value of a JSON text; None for no text. Raise ConfigError if the text is not JSON, or is `null`."""
    if text is None:
        return None
    form = '[{"id": 5}]' if option == "--keys" else '{"id": 5}'
    hint = f"Write it as {form}, in quotes of your shell."
    try:
        value = exact_json.parsed(text)
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{option} is not JSON: {error}", hint) from None
    if value is None:
        # Without the field the signal would ask for the whole table.
        raise ConfigError(f"{option} is null", hint)
    return value


def _check(settings: Settings, kind: str, tables: tuple[str, ...]) -> None:
    """Print what is wrong with the tables of a signal of the type `kind`.

    Raise ConfigError if `execute-snapshot` names only tables that cannot be read.
    """
    warnings = table_warnings(settings, kind, tables, partial(online_tables_at_newest, settings))
    if warnings.unchecked:
        output.warning(warnings.unchecked)
    for finding in warnings.findings:
        output.problem(f": {finding.problem}", finding.repair, severity="warning", name=finding.name)
    if warnings.is_useless:
        raise ConfigError(
            "The signal was not sent: it names no table that can be read", "Repair what the warnings above name."
        )
