"""Tests that each call to a server or a child process has a time limit, so that it cannot wait for ever.

The tests read the source. `BOUNDS` lists the calls that wait, and the argument that limits each call. A future of
Kafka's admin client is limited by `request_timeout` of its request. The calls of librdkafka through ctypes are not
listed: they all take milliseconds.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeGuard

import pytest

ROOT = Path(__file__).parents[3]
FILES = sorted(
    file for folder in ("incsnap", "signals", "lab", "tests", "benchmarks") for file in (ROOT / folder).rglob("*.py")
)


@dataclass(frozen=True)
class Bound:
    """The arguments that limit the time of a call. The call has a limit if either field is fulfilled."""

    keywords: tuple[str, ...]  #: keyword arguments, all of which must be given
    position: int | None = None  #: index of the time among the positional arguments; None: keywords only

    def given(self, call: ast.Call) -> bool:
        if {each.arg for each in call.keywords}.issuperset(self.keywords):
            return True
        return self.position is not None and len(call.args) > self.position


def _timeout(position: int | None = None) -> Bound:
    return Bound(("timeout",), position)


_MYSQL = Bound(("connect_timeout", "read_timeout", "write_timeout"))
_ADMIN = Bound(("request_timeout",))
#: Name of the called function -> its bound. The name before it is added if other functions have the same name.
BOUNDS: Mapping[str, Bound] = {
    "pymysql.connect": _MYSQL,
    "connections.Connection": _MYSQL,
    "LightConnection": _MYSQL,
    "urlopen": _timeout(2),
    "HTTPConnection": _timeout(2),
    "HTTPSConnection": _timeout(2),
    "create_connection": _timeout(1),
    # confluent_kafka: Consumer and Producer
    "consumer.poll": _timeout(0),
    "consume": _timeout(1),
    "consumer.committed": _timeout(1),
    "get_watermark_offsets": _timeout(1),
    "offsets_for_times": _timeout(1),
    "list_topics": _timeout(1),
    "producer.flush": _timeout(0),
    "init_transactions": _timeout(0),
    "commit_transaction": _timeout(0),
    "abort_transaction": _timeout(0),
    "send_offsets_to_transaction": _timeout(2),
    # confluent_kafka: AdminClient
    **dict.fromkeys(
        [
            "create_topics", "delete_topics", "describe_topics", "create_partitions", "describe_configs",
            "incremental_alter_configs", "describe_cluster", "delete_records", "list_offsets", "list_consumer_groups",
            "describe_consumer_groups", "delete_consumer_groups", "list_consumer_group_offsets",
            "alter_consumer_group_offsets",
        ],
        _ADMIN,
    ),
    # children
    "subprocess.run": _timeout(),
    "subprocess.call": _timeout(),
    "subprocess.check_call": _timeout(),
    "subprocess.check_output": _timeout(),
    "communicate": _timeout(1),
    "wait": _timeout(0),
}  # fmt: skip

#: Call that needs no time limit -> the reason.
FREE = {
    "self.changed.wait()": "the tail's thread waits for room in its own queue, until it is closed",
    "_listen: a socket without settimeout": "planner and driver wait for each other's word; whoever dies hangs up",
    "_reap: a socket without settimeout": "the zygote's own pipe, which does not block",
    "schema_registry.SchemaRegistryClient(dict(settings.client))": "client_settings puts a timeout there",
}

#: Class that takes its time limits in a dictionary of settings -> the keys that must be given.
SETTINGS = {
    "SchemaRegistryClient": {"timeout"},
    "BinLogStreamReader": {"connect_timeout", "read_timeout", "write_timeout"},
}
_TIMES = {"timeout", "connect_timeout", "read_timeout", "write_timeout", "request_timeout"}


def waits_for_ever(source: str) -> Iterator[tuple[int, str]]:
    """Yield line and text of each call in `source` that has no time limit."""
    for scope in ast.walk(ast.parse(source)):
        if isinstance(scope, ast.Call) and not _bounded(scope):
            yield scope.lineno, ast.unparse(scope)
        elif isinstance(scope, ast.FunctionDef):
            called = {_names(call)[-1]: call for call in ast.walk(scope) if isinstance(call, ast.Call)}
            if not called.keys().isdisjoint({"connect_ex", "recv", "recv_into"}) and "settimeout" not in called:
                yield scope.lineno, f"{scope.name}: a socket without settimeout"


def _bounded(call: ast.Call) -> bool:
    if any(each.arg in _TIMES and _is_none(each.value) for each in call.keywords):
        return False
    names = _names(call)
    if names[-1] in SETTINGS:
        given = {
            key.value for each in ast.walk(call) if isinstance(each, ast.Dict) for key in each.keys if _is_text(key)
        }
        return given.issuperset(SETTINGS[names[-1]])
    bound = BOUNDS.get(".".join(names[-2:])) or BOUNDS.get(names[-1])
    return bound is None or bound.given(call)


def _names(call: ast.Call) -> list[str]:
    """Return `["self", "consumer", "poll"]` for `self._consumer.poll`. Parts that are not names are left out."""
    return [part.lstrip("_") for part in ast.unparse(call.func).split(".") if part.isidentifier()] or [""]


def _is_text(node: ast.expr | None) -> TypeGuard[ast.Constant]:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


@pytest.mark.parametrize("file", FILES, ids=[str(file.relative_to(ROOT)) for file in FILES])
def test_every_call_that_waits_for_somebody_is_given_its_time(file: Path) -> None:
    without_time = [f"line {line}: {text}" for line, text in waits_for_ever(file.read_text()) if text not in FREE]

    assert without_time == []


def test_every_exception_is_needed() -> None:
    waiting = {text for file in FILES for _, text in waits_for_ever(file.read_text())}

    assert FREE.keys() - waiting == set()


@pytest.mark.parametrize(
    "call",
    [
        "pymysql.connect(host=h)",
        "pymysql.connect(host=h, connect_timeout=1, write_timeout=1)",
        "pymysql.connect(host=h, connect_timeout=1, read_timeout=None, write_timeout=1)",
        "urllib.request.urlopen(url)",
        "socket.create_connection(address)",
        "consumer.poll()",
        "self._consumer.committed([partition])",
        "Consumer({}).consume(10)",
        "admin.list_topics()",
        "admin.list_topics(timeout=None)",
        "admin.create_topics([topic])[topic].result()",
        "subprocess.run(command, check=True)",
        "child.communicate()",
        "child.wait()",
        "partial(dial, settings, read_timeout=None)",
        "SchemaRegistryClient({'url': url})",
        "BinLogStreamReader(connection_settings={'host': h, 'connect_timeout': 1}, server_id=1)",
        "def listens(probe): return probe.connect_ex(address) == 0",
    ],
)
def test_a_call_without_a_time_is_found(call: str) -> None:
    assert list(waits_for_ever(call))


@pytest.mark.parametrize(
    "call",
    [
        "pymysql.connect(host=h, connect_timeout=1, read_timeout=1, write_timeout=1)",
        "urllib.request.urlopen(url, timeout=1)",
        "consumer.poll(0.1)",
        "consumer.consume(10, timeout=1)",
        "admin.create_topics([topic], request_timeout=1)[topic].result()",
        "subprocess.run(command, timeout=1)",
        "child.wait(10)",
        "SchemaRegistryClient({'url': url, 'timeout': 1})",
        "def listens(probe): probe.settimeout(1); return probe.connect_ex(address) == 0",
    ],
)
def test_a_call_with_its_time_is_left_alone(call: str) -> None:
    assert list(waits_for_ever(call)) == []
