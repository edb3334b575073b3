"""A job with TLS certificates, SASL, only the documented rights, and secrets that must not leak.

It also tests the error if the server has purged binlog that the job has not read.
"""

from __future__ import annotations

import contextlib
import grp
import os
import re
import secrets
import stat
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from incsnap.monitoring.job_status import NAME
from lab.captured_database import CapturedDatabase, captured_database
from lab.replay import read_topics
from lab.running_job import RunningJob, end_of, session_pids
from lab.table_designs import ORDERS
from signals import send
from tests.support.locked_servers import USER, LockedServers, locked_servers
from tests.support.mysql_versions import end_of_binlog
from tests.support.waiting import wait_until

pytestmark = pytest.mark.servers


@pytest.fixture
def hidden() -> dict[str, str]:
    """Recognisable secrets, by their purpose."""
    return {name: f"hush-{name}-{secrets.token_hex(6)}" for name in ("mysql", "kafka", "key", "salt")}


@pytest.fixture
def locked(hidden: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[LockedServers]:
    (tmp_path / "tmp").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))
    with locked_servers(tmp_path, hidden["kafka"]) as servers:
        yield servers


@pytest.fixture
def guarded(locked: LockedServers, topic_prefix: str, tmp_path: Path) -> Iterator[CapturedDatabase]:
    (tmp_path / "job").mkdir()
    with captured_database(locked.mysql, locked.kafka, "shop", topic_prefix, tmp_path / "job") as made:
        yield made
        sys.stdout.write(f"The job's log ends:\n{end_of(made.log, 60)}\n")


def test_a_job_needs_no_more_than_its_documented_rights_and_tells_no_secret(
    guarded: CapturedDatabase, locked: LockedServers, hidden: dict[str, str], tmp_path: Path
) -> None:
    orders = guarded.create(ORDERS, 3_000)
    locked.grant_mysql(hidden["mysql"], "shop")
    locked.grant_kafka(guarded.prefix, guarded.notifications, f"{guarded.prefix}-signal")
    client = locked.authority.pair("client", password=hidden["key"])
    vault = tmp_path / "vault.properties"
    vault.write_text("".join(f"{name}={secret}\n" for name, secret in hidden.items()))
    vault.chmod(0o600)
    entry = {name: f"${{file:{vault}:{name}}}" for name in hidden}
    sasl = {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "PLAIN",
        "sasl.jaas.config": "org.apache.kafka.common.security.plain.PlainLoginModule required"
        f' username="{USER}" password="{hidden["kafka"]}";',
        "ssl.truststore.location": str(locked.authority.certificate),
    }
    vault.write_text(vault.read_text() + f"jaas={sasl['sasl.jaas.config']}\n")
    sasl["sasl.jaas.config"] = f"${{file:{vault}:jaas}}"
    settings = {
        "database.user": USER,
        "database.password": entry["mysql"],
        "database.ssl.mode": "verify_identity",
        "database.ssl.truststore": str(locked.authority.certificate),
        "database.ssl.keystore": str(client.both),
        "database.ssl.keystore.password": entry["key"],
        "bootstrap.servers": locked.locked_kafka,
        "signal.kafka.bootstrap.servers": locked.locked_kafka,
        "incsnap.status.group": grp.getgrgid(os.getgid()).gr_name,
        "column.mask.hash.SHA-256.with.salt." + hidden["salt"]: "shop\\.orders\\.sku",
        **{f"{side}.{name}": value for side in ("producer", "signal.consumer") for name, value in sasl.items()},
    }
    send.to_topic(guarded.kafka, f"{guarded.prefix}-signal", guarded.prefix, "first", "log", {"message": "here"})
    with guarded.job(settings) as job, guarded.notices() as notices:
        job.wait_until_streaming()
        guarded.execute_by_message("by-message", [orders])
        job.wait_until("the snapshot", lambda: notices.completed("by-message"))
        guarded.drain(job)
        shown = shown_by_processes(job)
        assert [*open_to_others(guarded.checkpoint), *open_to_others(tmp_path / "tmp")] == []
        assert any((tmp_path / "tmp").glob("blockmgr-*")), "Spark's blocks are elsewhere"
        status = guarded.checkpoint / "incsnap" / NAME
        wait_until(lambda: stat.S_IMODE(status.stat().st_mode) == 0o640)
        with contextlib.closing(guarded.connect()) as connection, connection.cursor() as cursor:
            cursor.execute(
                "SELECT DISTINCT s.variable_value FROM performance_schema.status_by_thread s"
                " JOIN performance_schema.threads t USING (thread_id)"
                " WHERE s.variable_name = 'Ssl_cipher' AND t.processlist_user = %s",
                (USER,),
            )
            assert [cipher for (cipher,) in cursor if not cipher] == [], "a connection without TLS"
        job.stop()
        assert re.search(r"INFO +incsnap\.planner\S*: here$", guarded.log.read_text(), re.MULTILINE), "no signal `log`"
        purge(guarded)

    with guarded.job(settings) as again:
        wait_until(lambda: again.exit_code() is not None)
        log = guarded.log.read_text(errors="replace")
        assert again.exit_code() in (1, 2), log[-3000:]
    for part in ("purged", "checkpoint.location", "execute-snapshot"):
        assert part in log, log[-3000:]

    topics = [str(orders), str(guarded.signals), "shop.marks"]
    records: list[bytes] = []
    read_topics(
        guarded.kafka,
        [*(f"{guarded.prefix}.{name}" for name in topics), guarded.prefix, guarded.notifications],
        lambda message: records.append((message.key() or b"") + (message.value() or b"")),
    )
    assert len(records) > 3_000
    places = {"a record": b"".join(records), **shown, **files_of(tmp_path)}
    assert len(places) > 20
    assert [f"{name} in {place}" for place, content in places.items() for name in secrets_in(content, hidden)] == []


def open_to_others(folder: Path) -> list[Path]:
    """Return the files and folders below `folder` that every user of the machine may read."""
    reached, opened = [folder], []
    while reached:
        for path in reached.pop().iterdir():
            with contextlib.suppress(FileNotFoundError):
                mode = path.stat().st_mode
                opened += [path] if mode & stat.S_IROTH else []
                reached += [path] if stat.S_ISDIR(mode) and mode & stat.S_IXOTH else []
    return opened


def secrets_in(content: bytes, hidden: dict[str, str]) -> list[str]:
    return [name for name, secret in hidden.items() if secret.encode() in content]


def shown_by_processes(job: RunningJob) -> dict[str, bytes]:
    """Return command lines, which everybody can read, and environments, which children inherit."""
    texts = {}
    for pid in session_pids(job.pid):
        for name in ("cmdline", "environ"):
            with contextlib.suppress(OSError):
                texts[f"{name} of {pid}"] = Path(f"/proc/{pid}/{name}").read_bytes()
    return texts


def files_of(folder: Path) -> dict[str, bytes]:
    """Return the content of all files of the job, without those that it was given."""
    given = ("vault.properties", "incsnap.properties")
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and path.name not in given and "tls" not in path.parts
    }


def purge(play: CapturedDatabase) -> None:
    """Make a change while the job is stopped, and purge the binlog with this change."""
    with contextlib.closing(play.connect()) as connection, connection.cursor() as cursor:
        cursor.execute("DELETE FROM shop.orders WHERE id = 2")
        cursor.execute("FLUSH BINARY LOGS")
        newest, _ = end_of_binlog(connection)
        cursor.execute(f"PURGE BINARY LOGS TO '{newest}'")
