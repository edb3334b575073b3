"""Spark's files on a local disk, written without a process for each.

Spark writes two small files per batch: its offset log and its commit log. Hadoop's class for local files then sets
their permissions, although the process's umask has just done so. Without a native library it runs `chmod` for this: 5
ms per file, a tenth of a small batch. Neither a setting nor another class avoids this. So the JVM gets a class that
does not set permissions (`compiled_classes`).
"""

from __future__ import annotations

import logging
from typing import Any

from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

from incsnap.spark.store.compiled_classes import compiled

log = logging.getLogger(__name__)
#: Hadoop's class for local files, without checksums.
RAW = "org.apache.hadoop.fs.RawLocalFileSystem"
_NAME = "IncsnapLocalFileSystem"
#: The class's source. It is in the package of its parent, as it must be to be defined there.
_JAVA = f"""
package org.apache.hadoop.fs;
public class {_NAME} extends RawLocalFileSystem {{
  public void setPermission(Path path, org.apache.hadoop.fs.permission.FsPermission permission) {{}}
}}
"""


def use(spark: SparkSession) -> None:
    """Let this session write files of `file:` by a class that does not set permissions.

    If that fails, Hadoop's class stays.
    """
    jvm: Any = spark.sparkContext._jvm
    try:
        (name,) = compiled(jvm, RAW, {_NAME: _JAVA})
        configuration = spark.sparkContext._jsc.hadoopConfiguration()
        configuration.set("fs.file.impl", name)
        # Hadoop caches file systems by address, whatever their class. So one of another class is closed.
        root = jvm.java.net.URI.create("file:///")
        if (file_system := jvm.org.apache.hadoop.fs.FileSystem.get(root, configuration)).getClass().getName() != name:
            file_system.close()
    except Py4JError as error:
        log.debug("Hadoop's own class writes Spark's files, because the JVM refused a class of incsnap: %s", error)
