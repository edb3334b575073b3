"""The command `incsnap takeover FILE`: it prepares a job that continues where a connector has stopped."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from threading import Event
from typing import TYPE_CHECKING

import click

from incsnap.cli.settings_file import settings_file

if TYPE_CHECKING:
    from incsnap.config.settings import Settings

#: Seconds between two looks at a connector that is to end.
_PAUSE_SECONDS = 0.3


@click.command()
@settings_file
@click.option("--dry-run", is_flag=True, help="Only print what would be done.")
@click.option(
    "--offsets",
    type=click.Path(dir_okay=False),
    help="File with the offset: what GET /connectors/NAME/offsets prints, or that of a standalone worker.",
)
@click.option("--rest", metavar="URL", help="Address of Kafka Connect, to see that the connector is stopped.")
@click.option("--wait", is_flag=True, help="Check everything now, and wait until the connector has stopped.")
@click.option("--run", "runs", is_flag=True, help="Also start the job, with Spark ready before the connector stops.")
def takeover(
    file: str, worker: str | None, dry_run: bool, offsets: str | None, rest: str | None, wait: bool, runs: bool
) -> None:
    """Continue the topics of a stopped connector, without a gap and without repetitions.

    FILE is the connector's file, with bootstrap.servers and checkpoint.location. The command reads the connector's
    offset where Kafka Connect keeps it, and the records behind it in the topics. It writes the place into the
    checkpoint, and nothing to MySQL or Kafka. If the connector wrote in transactions, the command ends the one that
    the connector may have left open. Then start the job with `incsnap run FILE`, or let the command start it (--run).

    Exit code 2 (ConfigError): the connector runs, or the job cannot continue there.
    """
    from incsnap.checkpoint.object_store import set_access
    from incsnap.cli.run import run_job
    from incsnap.config.documents import read_worker
    from incsnap.config.load import read
    from incsnap.errors import ConfigError
    from incsnap.takeover.connector_offset import offset_of
    from incsnap.takeover.join import require_new_checkpoint
    from incsnap.takeover.offset_sources import NAME_IT, find_offset

    if dry_run and runs:
        raise ConfigError("--dry-run writes nothing, and --run starts a job", "Give one of them.")
    settings = read(file, worker).settings
    set_access(settings.checkpoint_location, settings.store)
    require_new_checkpoint(settings)
    kept = find_offset(settings, file, worker, offsets)
    offset_of(kept.content)
    if rest and not kept.connector:
        raise ConfigError(f"{kept.where} does not name the connector, so Kafka Connect cannot be asked", NAME_IT)
    of_worker = read_worker(worker)
    running = _running(settings, rest, of_worker, kept.connector)
    if running.words and not wait:
        raise ConfigError(
            f"the connector {kept.connector} still runs: {running.words}",
            f"Stop it (PUT /connectors/{kept.connector or 'NAME'}/stop) and try again, or wait for it with --wait.",
        )

    def take_over(stopping: Event) -> None:
        if running.words:
            click.echo(f"Ready. Stop the connector now ({running.words}).", err=True)
            _await_end(settings, rest, of_worker, kept.connector, stopping, running)
        if not stopping.is_set():
            if not dry_run:
                _end_transaction(settings, of_worker, kept.connector)
            _take_over(settings, file, worker, offsets, dry_run=dry_run)

    if runs:
        run_job(file, worker, await_place=take_over)
        return
    take_over(Event())
    if not dry_run:
        click.echo(f"Next: incsnap run {file}" + (f" --worker {worker}" if worker else ""))


def _take_over(settings: Settings, file: str, worker: str | None, offsets: str | None, *, dry_run: bool) -> None:
    """Find the place of a stopped connector, say what was found, and write the place into the checkpoint.

    The parameters are those of `takeover`.
    """
    from incsnap.cli import output
    from incsnap.config.documents import read_document, read_worker
    from incsnap.takeover.connector_offset import offset_of
    from incsnap.takeover.differences import differences
    from incsnap.takeover.gtid_sources import GtidSources
    from incsnap.takeover.join import join, write
    from incsnap.takeover.offset_sources import find_offset
    from incsnap.takeover.partitioners import partitioner_of

    kept = find_offset(settings, file, worker, offsets)
    click.echo(f"{kept.where} has the offset of the connector {kept.connector or settings.topic_prefix}.")
    own = read_document(file)
    partitioner = partitioner_of(own, read_worker(worker))
    joined = join(settings, offset_of(kept.content), GtidSources.of(own), partitioner)
    for line in (*joined.lines, *differences(file, worker)):
        click.echo(line)
    for warning in joined.warnings:
        output.warning(warning)
    if dry_run:
        click.echo("Nothing was written (--dry-run).")
        return
    write(settings, joined)


def _end_transaction(settings: Settings, worker: Mapping[str, str], connector: str) -> None:
    """End the transaction that the connector may have left open, so that its offset and its records are final."""
    from incsnap.cli import output
    from incsnap.kafka.client_settings import ClientSettings
    from incsnap.takeover.open_transaction import end_transaction, task_transaction

    transactional_id = task_transaction(worker, connector)
    if not transactional_id:
        return
    client = ClientSettings(settings.kafka.bootstrap_servers, settings.kafka.producer)
    if why := end_transaction(client, transactional_id):
        output.warning(
            f"The transaction {transactional_id} of the connector cannot be ended: {why}. If the connector was killed,"
            " consumers that read committed records see the job's records once the broker has ended it (by default"
            " after a minute). Give the job's user the right Write on this transactional id."
        )


@dataclass(frozen=True, slots=True)
class _Running:
    """A reason for which a connector seems to run."""

    words: str = ""  #: the reason in words; "" if nothing says that it runs
    by_connect: bool = False  #: whether Connect has said so, not the topics
    rest: str = ""  #: address of Connect's REST interface that has said so; "" for none


def _await_end(
    settings: Settings,
    rest: str | None,
    worker: Mapping[str, str],
    connector: str,
    stopping: Event,
    seen: _Running,
) -> None:
    """Wait until the connector has ended, or until `stopping` is set.

    `seen`: why the connector seemed to run. If Connect has said so, Connect also says when the connector has stopped.
    An error of its REST interface says nothing, so Connect is asked again. A worker that does not listen any more was
    killed, perhaps with others that go on: then the topics are watched. The other parameters are those of `_running`.
    """
    from incsnap.errors import ServerUnreachable
    from incsnap.takeover.connector_state import NoWorkerListens

    rest, has_warned = rest or seen.rest, False
    while not stopping.wait(_PAUSE_SECONDS):
        try:
            running = _running(settings, rest, worker, connector, watches=not seen.by_connect)
        except NoWorkerListens:
            running = _running(settings, None, worker, connector)
        except ServerUnreachable as error:
            if not rest:
                raise
            if not has_warned:
                click.echo(f"{error.message}. It is asked again.", err=True)
            has_warned = True
            continue
        if not running.words:
            return


def _running(
    settings: Settings, rest: str | None, worker: Mapping[str, str], connector: str, *, watches: bool = True
) -> _Running:
    """Return why the connector seems to run.

    `worker`: settings of its worker. `watches`: whether to watch the topics too, if Connect does not say that it runs.
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
        if not state and connector and (named := rest_of(worker)):
            # The worker's file may be that of another machine.
            with suppress(ServerUnreachable, ConfigError):
                state, rest = running_by_rest(named, connector), named
    if state or not watches:
        return _Running(state, by_connect=bool(state), rest=rest or "")
    with connect(settings.mysql) as connection:
        topics = {topic for table in tables(connection, settings.tables) for topic in topics_of(settings, table)}
    return _Running(arriving_records(client, topics))
