"""``incsnap status FILE``: how the job is doing, from what it keeps beside its checkpoint; the job need not run."""

from __future__ import annotations

import click
from rich.table import Table

from incsnap.cli import output
from incsnap.cli.settings_file import settings_file
from incsnap.config.load import read
from incsnap.errors import shorten


@click.command()
@settings_file
def status(file: str, worker: str | None) -> None:
    """Show how far the job is, and what it has sent."""
    from incsnap.pipeline.status import read_status

    found = read_status(read(file, worker).settings.checkpoint_location)
    shown = output.console()
    if found is None:
        shown.print("No batch has been written yet.")
        return
    snapshot = ", ".join(str(table) for table in found.reading) or "none"
    waiting = ", ".join(str(table) for table in found.queue) or "none"
    table = Table.grid(padding=(0, 2))
    for name, value in (
        ("batch", f"{found.batch:,}"),
        ("delivered", str(found.delivered) or "nothing"),
        ("position", f"{found.position.file}:{found.position.pos}"),
        ("change events sent", f"{found.sent.events:,}"),
        ("snapshot rows sent", f"{found.sent.reads:,}"),
        ("snapshot rows overtaken by an event", f"{found.sent.discarded:,}"),
        ("bytes sent", f"{found.sent.bytes:,}"),
        ("snapshot", f"{snapshot}{' (paused)' if found.paused else ''}"),
        ("rows read of it", f"{found.rows_read:,}"),
        ("waiting", waiting),
        ("windows in flight", str(found.windows_in_flight)),
        ("prepared XA transactions", shorten(", ".join(found.prepared)) or "none"),
    ):
        table.add_row(name, value)
    shown.print(table)
