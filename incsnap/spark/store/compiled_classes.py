"""Java classes that are compiled inside Spark's JVM, for changes that neither a setting nor an existing class can make.

Spark brings the compiler (Janino), for the code that it generates itself. So incsnap needs no jar of its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from py4j.protocol import Py4JError


def compiled(jvm: Any, beside: str, sources: Mapping[str, str]) -> list[str]:
    """Compile classes in the JVM and return their full names. A class that the JVM already has is not compiled again.

    `beside`: an existing class, whose package the new classes join. `sources`: Java by simple name, a class after those
    that it uses. Raise Py4JError if the JVM refuses.
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
