"""Classes for Spark's JVM where neither a setting nor another class helps, made by the compiler that Spark has with it
for its generated code: there is no jar of ours to build, to ship and to name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from py4j.protocol import Py4JError


def compiled(jvm: Any, beside: str, sources: Mapping[str, str]) -> list[str]:
    """The names of the classes, which whoever looks for them finds; a JVM that has had a session before knows them.

    ``beside``: the class in whose package they are. ``sources``: Java by simple name, a class after those that it
    uses. Raises ``Py4JError``.
    """
    neighbour = jvm.java.lang.Class.forName(beside)
    return [_compiled(jvm, neighbour, name, java) for name, java in sources.items()]


def _compiled(jvm: Any, neighbour: Any, simple: str, java: str) -> str:
    name = f"{neighbour.getPackageName()}.{simple}"
    try:
        jvm.java.lang.Class.forName(name)
    except Py4JError:
        compiler = jvm.org.codehaus.janino.SimpleCompiler()
        compiler.setParentClassLoader(neighbour.getClassLoader())
        compiler.cook(java)
        (code,) = compiler.getBytecodes().values()
        handles = jvm.java.lang.invoke.MethodHandles
        handles.privateLookupIn(neighbour, handles.lookup()).defineClass(code)
    return name
