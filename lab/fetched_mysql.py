"""A MySQL server unpacked from Debian's packages into the cache. Nothing is installed on the system.

The newest MySQL is in Debian *sid* only. An apt with all its state in one folder downloads the packages from the
machine's own mirror, and `dpkg-deb` unpacks them. The server uses the C library and the dynamic loader of its packages,
so the machine's own release does not matter.
"""

from __future__ import annotations

import contextlib
import os
import platform
import shutil
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pymysql

from incsnap.errors import ServerUnreachable
from lab import cache, debian_mirror
from lab.addresses import MySqlAddress
from lab.breakable import Breakable
from lab.child_programs import Child, run
from lab.flags import MYSQL_OPTIONS
from lab.free_port import PortTaken, free_ports
from lab.mysql_client import connect
from lab.private_apt import private_apt
from lab.progress import tell
from lab.run_folder import on_free_ports

_READY_SECONDS = 120
_INSTEAD = "Set INCSNAP_MYSQL=host:port (a server with GTIDs and row binlog), or install Docker."

# root may connect over TCP from any host. The server listens on the loopback address only.
_ROOT = "CREATE USER root@'%' IDENTIFIED BY ''; GRANT ALL ON *.* TO root@'%' WITH GRANT OPTION;\n"

#: Options that must be given when a data folder is made. A server with one of them makes its own data folder, in 3 s.
_AT_FIRST = ("--lower-case-table-names",)

# Documentation, Perl and manuals in the packages: a quarter of the bytes, never read.
_NOT_NEEDED = ("usr/share/doc", "usr/share/man", "usr/share/info", "usr/share/locale", "usr/share/perl", "var", "etc")


@contextlib.contextmanager
def fetched_mysql(options: Sequence[str] = ()) -> Iterator[MySqlAddress]:
    """Run a server with empty data on a free loopback port until the block ends.

    Fetch it first if the cache lacks it.
    """
    with breakable_mysql(options) as (address, _):
        yield address


@contextlib.contextmanager
def breakable_mysql(options: Sequence[str] = ()) -> Iterator[tuple[MySqlAddress, Breakable]]:
    """Run a server as `fetched_mysql` does. Yield its address, and a `Breakable` to kill, restart or suspend it."""
    installed = cache.entry(f"mysql-debian-sid-{platform.machine()}", _build)
    with on_free_ports(lambda folder: _server(installed, folder, options)) as server:
        yield server


@contextlib.contextmanager
def _server(installed: Path, folder: Path, options: Sequence[str]) -> Iterator[tuple[MySqlAddress, Breakable]]:
    data = folder / "data"
    at_first = [option for option in options if option.startswith(_AT_FIRST)]
    if at_first:
        _initialise(installed / "prefix", data, installed / "init.sql", folder / "initialize.log", at_first)
    else:
        shutil.copytree(installed / "template", data)
    (port,) = free_ports(1)
    address = MySqlAddress("127.0.0.1", port)
    command = [
        *_mysqld(installed / "prefix", data),
        *MYSQL_OPTIONS,
        f"--port={port}",
        f"--socket={folder}/s",
        f"--pid-file={folder}/pid",
        *options,
    ]
    with Breakable(
        "MySQL", command, folder / "mysqld.log", lambda mysqld: _wait_until_ready(mysqld, address)
    ) as server:
        yield address, server


def _wait_until_ready(mysqld: Child, address: MySqlAddress) -> None:
    deadline = time.monotonic() + _READY_SECONDS
    while True:
        if mysqld.exit_code() is not None:
            log = mysqld.log.read_text(errors="replace")
            error = PortTaken if "Bind on TCP/IP port" in log else ServerUnreachable
            raise error(f"MySQL stopped while starting:\n{mysqld.last_words()}")
        try:
            connect(address, connect_timeout=5, read_timeout=5).close()
            return
        except pymysql.err.OperationalError:
            if time.monotonic() > deadline:
                late = f"MySQL did not answer within {_READY_SECONDS} s:\n{mysqld.last_words()}"
                raise ServerUnreachable(late) from None
            time.sleep(0.05)


def _mysqld(prefix: Path, data: Path) -> list[str]:
    """Return the words with which every command of the unpacked mysqld begins."""
    loader = next(prefix.glob("usr/lib/*/ld-linux*.so.*"))
    libraries = [loader.parent, prefix / "usr/lib/mysql/private"]
    share = prefix / "usr/share/mysql"
    command = [str(loader), "--library-path", ":".join(map(str, libraries)), str(prefix / "usr/sbin/mysqld")]
    command += ["--no-defaults", f"--basedir={prefix}/usr", f"--datadir={data}", f"--lc-messages-dir={share}"]
    command += [f"--character-sets-dir={share}/charsets", f"--plugin-dir={prefix}/usr/lib/mysql/plugin"]
    command += ["--secure-file-priv=NULL", "--mysqlx=OFF", "--bind-address=127.0.0.1", "--skip-name-resolve"]
    # mysqld does not run as root without this option. In a container we often are root.
    return command + (["--user=root"] if os.getuid() == 0 else [])


def _build(folder: Path, downloads: Path) -> None:
    """Fill `folder` with `prefix` (the unpacked packages) and `template` (an initialised, empty data folder).

    Copying the template takes 0.1 s; initialising a data folder takes 3 s.
    """
    for program in ("apt-get", "dpkg-deb"):
        if shutil.which(program) is None:
            raise ServerUnreachable(f"MySQL can be fetched on Debian only: there is no {program} here", _INSTEAD)
    source = debian_mirror.mirror()
    if source is None:
        raise ServerUnreachable("MySQL can be fetched on Debian only: apt's sources name no Debian archive", _INSTEAD)
    tell(f"fetching MySQL from {source.uri} sid into {cache.root()} (once; about 65 MB)")
    prefix, template, log = folder / "prefix", folder / "template", downloads / "log"
    log.unlink(missing_ok=True)
    packages = _download(source, downloads, log)
    tell(f"unpacking MySQL: {len(packages)} packages")
    for package in packages:
        run("dpkg-deb", ["dpkg-deb", "-x", str(package), str(prefix)], log)
    for name in _NOT_NEEDED:
        shutil.rmtree(prefix / name, ignore_errors=True)
    tell("preparing MySQL's empty data folder (once)")
    init_file = folder / "init.sql"
    init_file.write_text(_ROOT)
    _initialise(prefix, template, init_file, log)
    # Each server then makes its own server_uuid. Two servers with one UUID would look like one source of GTIDs.
    (template / "auto.cnf").unlink(missing_ok=True)


def _initialise(prefix: Path, data: Path, init_file: Path, log: Path, options: Sequence[str] = ()) -> None:
    settings = ["--initialize-insecure", "--innodb-redo-log-capacity=64M", f"--init-file={init_file}", *options]
    run("mysqld --initialize", [*_mysqld(prefix, data), *settings], log)


def _download(source: debian_mirror.MirrorEntry, downloads: Path, log: Path) -> list[Path]:
    """Fetch mysqld's packages and their dependencies. Return the files. apt resumes an earlier, incomplete download."""
    apt = private_apt(source, downloads)

    def report() -> None:
        tell(f"fetching MySQL: {cache.bytes_below(downloads) / 1e6:.0f} MB so far")

    run("apt-get update", [*apt, "update"], log, meanwhile=report)
    install = ["install", "--download-only", "--no-install-recommends", "mysql-server-core"]
    run("apt-get install", [*apt, *install], log, meanwhile=report)
    return sorted((downloads / "cache/archives").glob("*.deb"))
