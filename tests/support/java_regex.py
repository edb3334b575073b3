"""The real java.util.regex, to compare patterns with."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import pyspark
from py4j import protocol
from py4j.java_gateway import GatewayParameters, JavaGateway, launch_gateway
from py4j.protocol import Py4JJavaError

from lab.java import java


class JavaRegex:
    """A running JVM that matches with `java.util.regex`."""

    def __init__(self, jvm: Any) -> None:
        self._pattern = jvm.java.util.regex.Pattern

    def matches(self, pattern: str, text: str, *, ignore_case: bool = False) -> bool | None:
        """Return whether the pattern matches all of `text`. Return None if Java refuses the pattern."""
        try:
            compiled = self._pattern.compile(pattern, self._pattern.CASE_INSENSITIVE if ignore_case else 0)
        except Py4JJavaError:
            return None
        return bool(compiled.matcher(text).matches())

    def first(self, pattern: str, text: str) -> tuple[int, int] | None:
        """Return begin and end, in UTF-16 units, of the first match in `text`."""
        matcher = self._pattern.compile(pattern).matcher(text)
        return (int(matcher.start()), int(matcher.end())) if matcher.find() else None


@contextmanager
def java_regex() -> Iterator[JavaRegex]:
    """Run the JVM until the block ends.

    PySpark replaces Py4J's `get_return_value`, for the whole process, as soon as a test starts a session. PySpark's
    function asks Spark's JVM about each exception, also about an exception of this JVM. So Py4J's own function is in
    place until the block ends.
    """
    (jar,) = (Path(pyspark.__file__).parent / "jars").glob("py4j-*.jar")
    port = launch_gateway(jarpath=str(jar), java_path=java(), die_on_exit=True)
    gateway = JavaGateway(gateway_parameters=GatewayParameters(port=port))
    try:
        with mock.patch("py4j.java_gateway.get_return_value", protocol.get_return_value):
            yield JavaRegex(gateway.jvm)
    finally:
        gateway.shutdown()
