"""The engine's `obey` step: it changes the state as the signals ask, command by command."""

from __future__ import annotations

from incsnap.errors import shorten
from incsnap.snapshot import notifications as notes
from incsnap.snapshot.commands import Command, Execute, LeaveOut, Pause, Report, Resume, Stop
from incsnap.snapshot.context import Request, identity_of
from incsnap.snapshot.next_context import REASON, NextContext
from incsnap.snapshot.notifications import comma_list

#: Ids of execute signals that are remembered, to warn of a repeated one.
MAX_RECENT = 32


def obey(state: NextContext, command: Command) -> None:
    """Change the state as the command asks. A command that cannot be obeyed adds a warning and changes nothing."""
    if isinstance(command, Execute):
        _execute(state, command)
    elif isinstance(command, Stop):
        _stop(state, command)
    elif isinstance(command, Pause):
        _pause(state, command)
    elif isinstance(command, Resume):
        _resume(state, command)
    elif isinstance(command, LeaveOut):
        _leave_out(state, command)
    elif isinstance(command, Report):
        state.notify(command.id, command.type, **dict(command.fields))
    else:
        state.limits.set(command.id, command.limits)


def _execute(state: NextContext, command: Execute) -> None:
    """Put the tables of the command into the queue, and report STARTED."""
    signal = identity_of(command.id, state.unfinished())
    if not command.collections and not command.unresolved:
        state.warn(f"signal {command.id} asks for no table; ignored", command.id)
        return
    if signal != command.id:
        state.warn(f"signal {command.id} comes again while a snapshot with this id runs; both are obeyed", command.id)
    elif command.id in state.recent:
        state.warn(f"signal {command.id} is repeated after its snapshot has finished; obeyed again", command.id)
    state.recent = [*(each for each in state.recent if each != command.id), command.id][-MAX_RECENT:]
    by_table = {collection.table: collection for collection in reversed(command.collections)}
    requests = [Request(signal, by_table[table]) for table in dict.fromkeys(c.table for c in command.collections)]
    names = command.names or [*(str(request.table) for request in requests), *command.unresolved]
    reason = {"reason": shorten(command.reason, REASON)} if command.reason else {}
    state.notify(signal, notes.STARTED, data_collections=comma_list(names), **reason)
    state.ask(requests)
    for name in command.unresolved:
        state.unknown(signal, name)


def _stop(state: NextContext, command: Stop) -> None:
    """Drop the tables that the command stops, and report ABORTED."""
    stopped = state.abort(lambda request: command.stops(request.signal, request.table))
    for signal, requests in stopped.items():
        state.notify(signal, notes.ABORTED, data_collections=comma_list([request.table for request in requests]))
    if not stopped:
        state.warn(f"signal {command.id}: no running or waiting snapshot to stop", command.id)
    end_pause(state)


def _pause(state: NextContext, command: Pause) -> None:
    """Plan no chunk until a resume command, and report PAUSED."""
    if state.paused or not state.unfinished():
        state.warn(
            f"signal {command.id}: {'paused already' if state.paused else 'no running snapshot to pause'}", command.id
        )
        return
    state.paused, state.paused_by = True, command.id
    _tell_all(state, notes.PAUSED)


def _resume(state: NextContext, command: Resume) -> None:
    """Plan chunks again, and report RESUMED."""
    if not state.paused:
        state.warn(f"signal {command.id}: no paused snapshot to resume", command.id)
        return
    state.paused, state.paused_by = False, ""
    _tell_all(state, notes.RESUMED)


def _leave_out(state: NextContext, command: LeaveOut) -> None:
    """Drop the table's windows, and let their ranges be read again.

    No event can discard their outdated rows, because some events of the table are left out of the stream.
    """
    spoiled = [window for window in state.held if window.table == command.table]
    state.held = [window for window in state.held if window.table != command.table]
    for window in spoiled:
        state.read_again(window)
    if not command.is_repeated:
        reason = f"rows from {command.place} on are left out; deletions among them are lost: {command.reason}"
        fields = {"scanned_collection": str(command.table), "reason": shorten(reason, REASON)}
        state.notify(command.id, notes.ROWS_LEFT_OUT, **fields)


def _tell_all(state: NextContext, kind: str) -> None:
    """Add a notification of type `kind` for each signal that has unfinished tables."""
    for signal, requests in state.unfinished().items():
        state.notify(signal, kind, data_collections=comma_list(requests))


def end_pause(state: NextContext) -> None:
    """End the pause if no table is read or waits.

    A pause belongs to the snapshots that were paused. A snapshot that is asked for later, even in the same batch,
    begins unpaused.
    """
    if not state.unfinished():
        state.paused, state.paused_by = False, ""
