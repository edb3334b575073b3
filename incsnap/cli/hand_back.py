"""The command `incsnap hand-back FILE`: it gives the place of a stopped job to a connector."""

from __future__ import annotations

import json
import os
from pathlib import Path

import click

from incsnap.cli.settings_file import settings_file
from incsnap.config.job_file import JobFile

_IF_IT_FAILS = "If this command fails, run it again before you start the connector."


@click.command("hand-back")
@settings_file
@click.option("--to-rest", metavar="URL", help="Give the offset to the stopped connector by Connect's REST interface.")
@click.option("--to-topic", is_flag=True, help="Write it into offset.storage.topic. No worker may run.")
@click.option("--to-file", type=click.Path(dir_okay=False), help="Write it into the file of a standalone worker.")
def hand_back(file: JobFile, worker: str | None, to_rest: str | None, to_topic: bool, to_file: str | None) -> None:
    """Let a Debezium connector continue where the stopped job has ended.

    FILE is the connector's file, with `name`. Without an option the offset is printed for `PATCH
    /connectors/NAME/offsets`, and the checkpoint stays usable. With an option the checkpoint does not run again, and
    the tables are written into the connector's schema history. The place in the signal topic is committed to
    signal.kafka.groupId.

    Exit code 2 (ConfigError): the job runs, or the connector cannot continue at its place.
    """
    from incsnap.checkpoint.files import Files
    from incsnap.checkpoint.handed_back import how_again, mark_handed_back, refuse_handed_back
    from incsnap.checkpoint.location import own_part
    from incsnap.checkpoint.lock import checkpoint_lock
    from incsnap.checkpoint.object_store import set_access
    from incsnap.cli import output
    from incsnap.config.documents import read_document
    from incsnap.config.load import given_names, read
    from incsnap.config.references import providers_of
    from incsnap.errors import ConfigError
    from incsnap.kafka.client_settings import ClientSettings
    from incsnap.takeover import offset_targets
    from incsnap.takeover.hand_back import hand_back as offset_of_job
    from incsnap.takeover.handed_signals import commit_signals, how_to_commit
    from incsnap.takeover.schema_history import history_topic, how_to_renew
    from incsnap.takeover.target_checks import require_ended, require_stopped, require_topic

    chosen = [option for option in (to_rest, to_topic, to_file) if option]
    if len(chosen) > 1:
        raise ConfigError("the offset has one place", "Give one of --to-rest, --to-topic and --to-file.")
    settings = read(file, worker).settings
    own, of_worker = given_names(file, worker)
    connector = own.get("name", "")
    topic = own.get("offsets.storage.topic") or of_worker.get("offset.storage.topic", "")
    if chosen and not connector:
        raise ConfigError("the file does not name the connector", "Add the line `name` with its name in Kafka Connect.")
    if to_topic and not topic:
        raise ConfigError("neither file has offset.storage.topic", "Give the worker's file with --worker.")
    set_access(settings.checkpoint_location, settings.store)
    root = own_part(settings.checkpoint_location)
    with checkpoint_lock(settings.checkpoint_location, root):
        refuse_handed_back(Files(root), also_begun=False)
        client = ClientSettings(settings.kafka.bootstrap_servers, settings.kafka.producer)
        if to_topic:
            require_topic(client, topic)
        if to_rest:
            require_stopped(to_rest, connector)
        elif to_topic or to_file:
            require_ended(client, of_worker, connector, in_file=bool(to_file))
        providers = providers_of({**of_worker, **own})
        history = history_topic(read_document(file), settings, os.environ, providers) if chosen else None
        what = offset_of_job(settings, history, how_to_renew(own))
        for line in what.lines:
            click.echo(line, err=not chosen)
        if not chosen:
            if what.signals_at is not None:
                click.echo(how_to_commit(settings, what.signals_at), err=True)
            click.echo(json.dumps(what.document))
            click.echo("Once the connector has this offset, do not start this job again: both would send.", err=True)
            if what.by_hand:
                click.echo(f"Before the connector starts: {what.by_hand}", err=True)
            return
        # The job does not read the group's place. So a place that is there too early changes nothing.
        if what.signals_at is not None:
            commit_signals(settings, what.signals_at)
            click.echo(f"The connector obeys the signals of {settings.signals.kafka_topic} from {what.signals_at} on.")
        # The mark comes first: once the offset is there, the job must not run again.
        mark_handed_back(Files(root), connector, done=False)
        if to_rest:
            offset_targets.to_rest(to_rest, connector, what)
        elif to_topic:
            offset_targets.to_topic(client, topic, connector, what)
        elif to_file and not offset_targets.to_file(Path(to_file), connector, what):
            output.warning(
                f"{to_file} had no offset of the connector {connector}. If its worker reads another file"
                " (offset.storage.file.filename), the connector does not get the place: do not start it,"
                f" {how_again(Files(root))} with the right file"
            )
        # The history comes behind the offset. A connector whose offset was refused, and that goes on at its old place,
        # would append its own statements to definitions of a later place.
        if history is not None:
            click.echo(f"Do not start the connector yet: {history.name} does not have the tables. {_IF_IT_FAILS}")
            history.append(what.history)
        mark_handed_back(Files(root), connector, done=True)
    how = f"PUT /connectors/{connector}/resume" if to_rest else "start the worker of Kafka Connect"
    click.echo(f"The connector {connector} continues there.")
    if what.by_hand:
        click.echo(f"Before the connector starts: {what.by_hand}")
    click.echo(f"Next: {how}")
