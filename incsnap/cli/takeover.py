"""The command `incsnap takeover FILE`: it prepares a job that continues where a connector has stopped."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from threading import Event
from typing import TYPE_CHECKING

import click

from incsnap.cli.settings_file import settings_file

if TYPE_CHECKING:
    from incsnap.config.job_file import JobFile
    from incsnap.config.settings import Settings
    from incsnap.errors import ConfigError, ServerUnreachable
    from incsnap.takeover.connector_offset import ConnectorOffset
    from incsnap.takeover.join import Joined

#: Seconds between two looks at a connector that is to end.
_PAUSE_SECONDS = 0.3


@click.command()
@settings_file
@click.option("--dry-run", is_flag=True, help="Only print what would be done, also while the connector runs.")
@click.option(
    "--offsets",
    type=click.Path(dir_okay=False),
    help="File with the offset: what GET /connectors/NAME/offsets prints, or that of a standalone worker.",
)
@click.option("--rest", metavar="URL", help="Address of Kafka Connect, to see that the connector is stopped.")
@click.option("--wait", is_flag=True, help="Check everything now, and wait until the connector has stopped.")
@click.option("--run", "runs", is_flag=True, help="Also start the job, with Spark ready before the connector stops.")
def takeover(
    file: JobFile, worker: str | None, dry_run: bool, offsets: str | None, rest: str | None, wait: bool, runs: bool
) -> None:
    """Continue the topics of a stopped connector, without a gap and without repetitions.

    FILE is the connector's file, with checkpoint.location and bootstrap.servers, or each has its option. The latter
    may also be in the file of --worker. The command reads the connector's offset where Kafka Connect keeps it, and the
    records behind it in the topics. It writes the place into the checkpoint, and nothing to MySQL or Kafka. If the
    connector wrote in transactions, the command ends the one that the connector may have left open. Then start the job
    with `incsnap run FILE` and the same options, or let the command start it (--run).

    Exit code 2 (ConfigError): the connector runs, or the job cannot continue there.
    """
    from incsnap.checkpoint.object_store import set_access
    from incsnap.cli import output
    from incsnap.cli.run import run_job
    from incsnap.config.job_file import command_line
    from incsnap.config.load import given_names, read
    from incsnap.errors import ConfigError
    from incsnap.takeover.connector_offset import offset_of
    from incsnap.takeover.join import require_new_checkpoint
    from incsnap.takeover.offset_sources import NAME_IT, find_offset, printed_at

    if dry_run and runs:
        raise ConfigError("--dry-run writes nothing, and --run starts a job", "Give one of them.")
    settings = read(file, worker).settings
    set_access(settings.checkpoint_location, settings.store)
    require_new_checkpoint(settings)
    kept = find_offset(settings, file, worker, offsets)
    offset_of(kept.content)
    printed = printed_at(offsets)
    if rest and not kept.connector:
        raise ConfigError(f"{kept.where} does not name the connector, so Kafka Connect cannot be asked", NAME_IT)
    _, of_worker = given_names(file, worker)
    running = _running_now(settings, rest, of_worker, kept.connector)
    if running.words:
        if not wait and not dry_run:
            raise ConfigError(
                f"the connector {kept.connector} still runs: {running.words}",
                f"Stop it (PUT /connectors/{kept.connector or 'NAME'}/stop) and try again, or wait for it with --wait.",
            )
        # Also with --run: what is refused here is refused before Spark starts.
        ends = _foresee(settings, file, worker, offsets, running.words, kept.connector)
        if dry_run:
            click.echo("Nothing was written (--dry-run).")
            return

    def take_over(stopping: Event) -> None:
        if running.words:
            click.echo(f"Ready. {ends} ({running.words}).", err=True)
            _await_end(settings, rest, of_worker, kept.connector, stopping, running)
        if not stopping.is_set():
            reads_signals = settings.tables.signal_table is not None
            if running.words and reads_signals and printed and printed_at(offsets) == printed:
                output.warning(
                    f"{offsets} was not written again since the connector ran, so its offset may be older than the"
                    " connector's end. Then the job obeys rows of the signal table between both places again. To avoid"
                    " that, give --worker and not --offsets, or write the file behind the connector's end, and take"
                    " over without --wait"
                )
            if not dry_run:
                _end_transaction(settings, of_worker, kept.connector)
            _take_over(settings, file, worker, offsets, dry_run=dry_run, is_foreseen=bool(running.words))

    if runs:
        run_job(file, worker, await_place=take_over)
        return
    take_over(Event())
    if not dry_run:
        click.echo(f"Next: {command_line('run', file, worker)}")


def _take_over(
    settings: Settings, file: JobFile, worker: str | None, offsets: str | None, *, dry_run: bool, is_foreseen: bool
) -> None:
    """Find the place of a stopped connector, say what was found, and write the place into the checkpoint.

    `is_foreseen`: whether `_foresee` has printed the settings without effect. The other parameters are those of
    `takeover`.
    """
    from incsnap.takeover.join import write

    joined = _join(settings, file, worker, _offset(settings, file, worker, offsets))
    _print(joined, () if is_foreseen else _differences(file, worker))
    if dry_run:
        click.echo("Nothing was written (--dry-run).")
        return
    # The place may have keys of rows. Only the job's user may read the checkpoint.
    before = os.umask(0o077)
    try:
        write(settings, joined)
    finally:
        os.umask(before)


def _foresee(
    settings: Settings, file: JobFile, worker: str | None, offsets: str | None, words: str, connector: str
) -> str:
    """Say what the take-over finds while the connector still runs, and return what the user does next.

    Write nothing. `words`: why the connector seems to run. `connector`: its name, "" if that is unknown. The other
    parameters are those of `takeover`. Raise ConfigError if the take-over is refused now, and the connector's end does
    not change that.
    """
    from incsnap.cli import output
    from incsnap.errors import ConfigError
    from incsnap.takeover.offset_place import STOP_BEHIND_HEARTBEAT

    click.echo(f"The connector still runs ({words}). This is the take-over as of now, and its numbers will change:")
    offset = _offset(settings, file, worker, offsets)
    ends = "Stop the connector now"
    try:
        joined = _join(settings, file, worker, offset)
    except ConfigError as error:
        if not _is_cured_by_end(settings, offset, error):
            raise
        for line in _differences(file, worker):
            click.echo(line)
        stop = f"PUT /connectors/{connector or 'NAME'}/stop"
        way_out = f"A clean stop changes that: stop the connector with {stop}, not by a kill"
        if error.hint == STOP_BEHIND_HEARTBEAT:
            way_out = error.hint.removesuffix(", and try again.")
            ends = "Stop the connector only behind a heartbeat, as the warning says"
        if offsets:
            way_out += f". Then write its new offset to {offsets}"
        output.warning(f"As of now the take-over is refused: {error.message}. {way_out}")
        return ends
    _print(joined, _differences(file, worker))
    return ends


def _is_cured_by_end(settings: Settings, offset: ConnectorOffset, error: ConfigError) -> bool:
    """Whether the take-over is refused only because of records behind the connector's offset.

    `error`: the refusal. After a clean stop no record is behind the offset, or only a transaction that is compressed.
    Raise ConfigError if `offset` is of another server.
    """
    from incsnap.errors import ConfigError
    from incsnap.mysql.session import connect
    from incsnap.takeover.offset_place import STOP_AT_A_ROW, STOP_BEHIND_HEARTBEAT, STOP_CLEANLY, place_of
    from incsnap.takeover.written_records import TOO_MANY_KEYLESS

    if error.hint not in (STOP_CLEANLY, STOP_AT_A_ROW, STOP_BEHIND_HEARTBEAT, TOO_MANY_KEYLESS):
        return False
    with closing(connect(settings.mysql)) as connection:
        try:
            place_of(connection, offset)
        except ConfigError as elsewhere:
            raise ConfigError(
                elsewhere.message,
                "If the connector has come to this server just now, wait until it has written its offset"
                f" (offset.flush.interval.ms, a minute by default), and try again. If not: {elsewhere.hint}",
            ) from None
    return True


def _offset(settings: Settings, file: JobFile, worker: str | None, offsets: str | None) -> ConnectorOffset:
    """Return the connector's newest offset, and say where it was found. The parameters are those of `takeover`."""
    from incsnap.takeover.connector_offset import offset_of
    from incsnap.takeover.offset_sources import find_offset

    kept = find_offset(settings, file, worker, offsets)
    click.echo(f"{kept.where} has the offset of the connector {kept.connector or settings.topic_prefix}.")
    return offset_of(kept.content)


def _join(settings: Settings, file: JobFile, worker: str | None, offset: ConnectorOffset) -> Joined:
    """Return where the job continues the topics. Nothing is written. `file` and `worker` are those of `takeover`."""
    from incsnap.config.load import given_names
    from incsnap.takeover.gtid_sources import GtidSources
    from incsnap.takeover.join import join
    from incsnap.takeover.partitioners import partitioner_of

    own, of_worker = given_names(file, worker)
    return join(settings, offset, GtidSources.of(own), partitioner_of(own, of_worker))


def _differences(file: JobFile, worker: str | None) -> Sequence[str]:
    from incsnap.takeover.differences import differences

    return differences(file, worker)


def _print(joined: Joined, differences: Sequence[str]) -> None:
    """Print what was found, and the warnings to stderr. `differences`: lines between both."""
    from incsnap.cli import output

    for line in (*joined.lines, *differences):
        click.echo(line)
    for warning in joined.warnings:
        output.warning(warning)


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
    unknown_at: str = ""  #: address of a Kafka Connect that has no connector of this name; "" for none
    unseen: str = ""  #: why nothing but the topics has shown whether it runs; "" if something has


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
    An error of its REST interface says nothing, so Connect is asked again. If the worker is gone (`_is_gone`), the
    topics are watched. The other parameters are those of `_running`.
    """
    from incsnap.errors import ServerUnreachable

    rest, has_warned = rest or seen.rest, False
    while not stopping.wait(_PAUSE_SECONDS):
        try:
            running = _running(settings, rest, worker, connector, watches=not seen.by_connect)
        except ServerUnreachable as error:
            if not rest:
                raise
            watched: _Running | None = None
            with suppress(ServerUnreachable):  # Kafka or MySQL may not answer either
                if _is_gone(settings, worker, error):
                    watched = _running(settings, None, worker, connector)
            if watched is None:
                if not has_warned:
                    click.echo(f"{error.message}. It is asked again.", err=True)
                has_warned = True
                continue
            running = watched
        if not running.words:
            return


def _running_now(settings: Settings, rest: str | None, worker: Mapping[str, str], connector: str) -> _Running:
    """Return why the connector seems to run now. The parameters are those of `_running`.

    A worker at `rest` may have been killed before (`_is_gone`). So the command warns, and asks as without `rest`. It
    also warns if Connect has no connector of this name.
    """
    from incsnap.cli import output
    from incsnap.errors import ServerUnreachable
    from incsnap.kafka.client_settings import ClientSettings
    from incsnap.takeover.connect_rest import without_login
    from incsnap.takeover.connector_state import live_workers

    try:
        running = _running(settings, rest, worker, connector)
    except ServerUnreachable as error:
        if not rest or not _is_gone(settings, worker, error):
            raise
        output.warning(
            f"{error.message}. No worker listens there, so only the group of the workers (with --worker) and records"
            f" that arrive show whether the connector runs. If {without_login(rest)} is wrong, correct --rest"
        )
        running = replace(_running(settings, None, worker, connector), unseen="")
    if running.unknown_at:
        output.warning(
            f"Kafka Connect at {without_login(running.unknown_at)} has no connector {connector}, so only records that"
            " arrive show whether the connector runs. If it has another name there, correct `name` in the connector's"
            " file. If another Kafka Connect runs it, give that address with --rest"
        )
    client = ClientSettings(settings.kafka.bootstrap_servers, settings.kafka.producer)
    if running.unseen and not running.words and live_workers(client, worker) is None:
        output.warning(
            f"{running.unseen}. So only records that arrive show whether the connector {connector} runs. If it may"
            " still run, give the address of Kafka Connect with --rest, or the worker's file with --worker"
        )
    return running


def _is_gone(settings: Settings, worker: Mapping[str, str], error: ServerUnreachable) -> bool:
    """Whether the worker behind an address that does not answer is gone: nothing listens there, or its group is empty.

    A worker that does not listen any more was killed, perhaps with others that go on. The name of a container that was
    killed leads nowhere. `error`: why the address does not answer.
    """
    from incsnap.kafka.client_settings import ClientSettings
    from incsnap.takeover.connect_rest import NoAnswer, NoWorkerListens
    from incsnap.takeover.connector_state import live_workers

    client = ClientSettings(settings.kafka.bootstrap_servers, settings.kafka.producer)
    is_refused = isinstance(error, NoWorkerListens)
    return is_refused or (isinstance(error, NoAnswer) and live_workers(client, worker) == 0)


def _running(
    settings: Settings, rest: str | None, worker: Mapping[str, str], connector: str, *, watches: bool = True
) -> _Running:
    """Return why the connector seems to run.

    `worker`: settings of its worker. `watches`: whether to watch the topics too, if Connect does not say that it runs.
    """
    from incsnap.config.topics import heartbeat_topic, topics_of
    from incsnap.errors import ConfigError, ServerUnreachable
    from incsnap.kafka.client_settings import ClientSettings
    from incsnap.mysql.catalog import tables
    from incsnap.mysql.session import connect
    from incsnap.takeover.connect_rest import NoWorkerListens
    from incsnap.takeover.connector_state import arriving_records, rest_of, running_by_group, running_by_rest

    client = ClientSettings(settings.kafka.bootstrap_servers, settings.kafka.producer)
    state: str | None
    unseen = ""
    if rest:
        state = running_by_rest(rest, connector)
    else:
        state = running_by_group(client, worker, connector)
        if not state and connector and (named := rest_of(worker)):
            # The worker's file may be that of another machine.
            try:
                state, rest = running_by_rest(named, connector), named
            except (ServerUnreachable, ConfigError) as error:
                # Nothing listens at the address of a worker that has ended.
                unseen = "" if worker and isinstance(error, NoWorkerListens) else error.message
        elif not state:
            unseen = "No address of Kafka Connect is known"
    if state or not watches:
        return _Running(state or "", by_connect=bool(state), rest=rest or "")
    with connect(settings.mysql) as connection:
        topics = {topic for table in tables(connection, settings.tables) for topic in topics_of(settings, table)}
    heartbeats = heartbeat_topic(settings)
    if heartbeats is not None and settings.topic_prefix in heartbeats.name:
        topics.add(heartbeats.name)
    return _Running(arriving_records(client, topics), unknown_at=rest or "" if state is None else "", unseen=unseen)
