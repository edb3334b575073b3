"""The machine's own java.util.regex, which patterns are held against."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyspark
from py4j.java_gateway import GatewayParameters, JavaGateway, launch_gateway
from py4j.protocol import Py4JJavaError

from lab.java import java


class JavaRegex:
    """``java.util.regex`` of a JVM that runs."""

    def __init__(self, jvm: Any) -> None:
        self._pattern = jvm.java.util.regex.Pattern

    def matches(self, pattern: str, text: str, *, ignore_case: bool = False) -> bool | None:
        """Return whether all of ``text`` is matched; None where Java refuses the pattern."""
        try:
            compiled = self._pattern.compile(pattern, self._pattern.CASE_INSENSITIVE if ignore_case else 0)
        except Py4JJavaError:
            return None
        return bool(compiled.matcher(text).matches())

    def first(self, pattern: str, text: str) -> tuple[int, int] | None:
        """Return begin and end, in UTF-16 units, of the first match in ``text``."""
        matcher = self._pattern.compile(pattern).matcher(text)
        return (int(matcher.start()), int(matcher.end())) if matcher.find() else None


@contextmanager
def java_regex() -> Iterator[JavaRegex]:
    """Yield the expressions of a JVM that ends with the block."""
    (jar,) = (Path(pyspark.__file__).parent / "jars").glob("py4j-*.jar")
    port = launch_gateway(jarpath=str(jar), java_path=java(), die_on_exit=True)
    gateway = JavaGateway(gateway_parameters=GatewayParameters(port=port))
    try:
        yield JavaRegex(gateway.jvm)
    finally:
        gateway.shutdown()
