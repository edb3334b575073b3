"""The command `incsnap takeover FILE`: it prepares a job that continues where a connector has stopped."""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING

import click

from incsnap.cli.settings_file import settings_file

if TYPE_CHECKING:
    from incsnap.config.settings import Settings

#: Seconds between two looks at a connector that is to end.
_PAUSE_SECONDS = 1.0


@click.command()
@settings_file
@click.option("--dry-run", is_flag=True, help="Only print what would be done.")
@click.option(
    "--offsets",
    type=click.Path(dir_okay=False),
    help="File with the offset: what GET /connectors/NAME/offsets prints, or that of a standalone worker.",
)
@click.option("--rest", metavar="URL", help="Address of Kafka Connect. Default: what the worker's file names.")
@click.option("--wait", is_flag=True, help="Check everything now, and wait until the connector has stopped.")
def takeover(file: str, worker: str | None, dry_run: bool, offsets: str | None, rest: str | None, wait: bool) -> None:
    """Continue the topics of a stopped connector, without a gap and without repetitions.

    FILE is the connector's file, with bootstrap.servers and checkpoint.location. The command reads the connector's
    offset where Kafka Connect keeps it, and the records behind it in the topics. It writes the place into the
    checkpoint, and nothing to MySQL or Kafka. Then start the job with `incsnap run FILE`.

    Exit code 2 (ConfigError): the connector runs, or the job cannot continue there.
    """
    from incsnap.checkpoint.object_store import set_access
    from incsnap.cli import output
    from incsnap.config.documents import read_document
    from incsnap.config.load import read
    from incsnap.errors import ConfigError
    from incsnap.takeover.connector_offset import offset_of
    from incsnap.takeover.differences import differences
    from incsnap.takeover.gtid_sources import GtidSources
    from incsnap.takeover.join import join, require_new_checkpoint, write
    from incsnap.takeover.offset_sources import find_offset

    loaded = read(file, worker)
    settings = loaded.settings
    set_access(settings.checkpoint_location, settings.store)
    require_new_checkpoint(settings)
    kept = find_offset(settings, file, worker, offsets)
    offset_of(kept.content)
    of_worker = {} if worker is None else read_document(worker)
    running = _running(settings, rest, of_worker, kept.connector)
    if running and not wait:
        raise ConfigError(
            f"the connector {kept.connector} still runs: {running}",
            f"Stop it (PUT /connectors/{kept.connector or 'NAME'}/stop) and try again, or wait for it with --wait.",
        )
    while running:
        click.echo(f"Ready. Stop the connector now ({running}).", err=True)
        time.sleep(_PAUSE_SECONDS)
        running = _running(settings, rest, of_worker, kept.connector)
    kept = find_offset(settings, file, worker, offsets)
    click.echo(f"{kept.where} has the offset of the connector {kept.connector or settings.topic_prefix}.")
    joined = join(settings, offset_of(kept.content), GtidSources.of(read_document(file)))
    for line in (*joined.lines, *differences(file, worker)):
        click.echo(line)
    for warning in joined.warnings:
        output.problem(warning, "")
    if dry_run:
        click.echo("Nothing was written (--dry-run).")
        return
    write(settings, joined)
    click.echo(f"Next: incsnap run {file}" + (f" --worker {worker}" if worker else ""))


def _running(settings: Settings, rest: str | None, worker: Mapping[str, str], connector: str) -> str:
    """Return in words why the connector seems to run; "" if nothing says so.

    `worker`: settings of its worker.
    """
    from incsnap.config.topics import topics_of
    from incsnap.errors import ConfigError, ServerUnreachable
    from incsnap.kafka.client_settings import ClientSettings
    from incsnap.mysql.catalog import tables
    from incsnap.mysql.session import connect
    from incsnap.takeover.connector_state import arriving_records, rest_of, running_by_group, running_by_rest

    client = ClientSettings(settings.kafka.bootstrap_servers, settings.kafka.producer)
    if rest:
        state = running_by_rest(rest, connector)
    else:
        state = running_by_group(client, worker, connector)
        if not state and (named := rest_of(worker)):
            # The worker's file may be that of another machine.
            with suppress(ServerUnreachable, ConfigError):
                state = running_by_rest(named, connector)
    if state:
        return state
    with connect(settings.mysql) as connection:
        topics = {topic for table in tables(connection, settings.tables) for topic in topics_of(settings, table)}
    return arriving_records(client, topics)
