"""Spark's files on a local disk, without a process for each.

Spark writes two small files a batch, its offset log and its commit log. Hadoop's class for local files then sets their
permissions, which the process's umask has just done, and without a native library of its own it runs ``chmod`` for
that: 5 ms each, a tenth of a small batch. There is neither a setting against it nor another class, so the JVM is given
one, with the method that asks for the process left out. It is made by the compiler that Spark has with it for its
generated code.
"""

from __future__ import annotations

import logging
from typing import Any

from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

from incsnap.spark.compiled_classes import compiled

log = logging.getLogger(__name__)
#: Hadoop's class for local files, without checksums.
RAW = "org.apache.hadoop.fs.RawLocalFileSystem"
_NAME = "IncsnapLocalFileSystem"
#: Of the package of its parent, as a class must be that is defined beside it.
_JAVA = f"""
package org.apache.hadoop.fs;
public class {_NAME} extends RawLocalFileSystem {{
  public void setPermission(Path path, org.apache.hadoop.fs.permission.FsPermission permission) {{}}
}}
"""


def use(spark: SparkSession) -> None:
    """Has files of this session's ``file:`` written by that class from now on; where that fails, as before."""
    jvm: Any = spark.sparkContext._jvm
    try:
        (name,) = compiled(jvm, RAW, {_NAME: _JAVA})
        configuration = spark.sparkContext._jsc.hadoopConfiguration()
        configuration.set("fs.file.impl", name)
        # Kept by its address, not by its class.
        root = jvm.java.net.URI.create("file:///")
        if (file_system := jvm.org.apache.hadoop.fs.FileSystem.get(root, configuration)).getClass().getName() != name:
            file_system.close()
    except Py4JError as error:
        log.debug("Spark's files are written by Hadoop's own class: %s", error)
