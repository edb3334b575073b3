"""Spark's logs of offsets and commits in an object store: each file is one object, written by one conditional request.

Spark itself writes to another name and renames. On an object store a rename is a copy and a deletion, among a dozen
requests. If two jobs share a checkpoint, the later rename wins. This module collects a file in memory and sends it with
If-None-Match: the file exists completely or not at all. If two jobs write the same file, one of them gets an error. So
Spark need not look for the next file first if this process has written the one before.
"""

from __future__ import annotations

import logging
from typing import Any

from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

from incsnap.spark.store.compiled_classes import compiled

log = logging.getLogger(__name__)
#: Spark's property that names the class, and Spark's own class, whose other methods stay.
PROPERTY = "spark.sql.streaming.checkpointFileManagerClass"
_PACKAGE = "org.apache.spark.sql.execution.streaming.checkpointing"
_PARENT = f"{_PACKAGE}.FileSystemBasedCheckpointFileManager"
_STREAM, _FILES = "IncsnapObjectStream", "IncsnapObjectFiles"
#: Options of Hadoop and s3a for a new file: If-None-Match, and no look beforehand for a file or a folder of that name.
_CONDITIONAL, _AT_ONCE = "fs.option.create.conditional.overwrite", "fs.s3a.create.performance"
_SOURCES = {
    _STREAM: f"""
package {_PACKAGE};
import org.apache.hadoop.fs.*;
public class {_STREAM} extends CheckpointFileManager.CancellableFSDataOutputStream {{
  private final FileSystem fs;
  private final Path path;
  private final boolean overwrite;
  private boolean ended;
  public {_STREAM}(FileSystem fs, Path path, boolean overwrite) {{
    super(new java.io.ByteArrayOutputStream());
    this.fs = fs;
    this.path = path;
    this.overwrite = overwrite;
  }}
  public synchronized void cancel() {{ ended = true; }}
  public synchronized void close() throws java.io.IOException {{
    if (ended) return;
    ended = true;
    FSDataOutputStreamBuilder builder = fs.createFile(path);
    builder.overwrite(true);
    builder.opt("{_AT_ONCE}", true);
    if (!overwrite) builder.must("{_CONDITIONAL}", true);
    FSDataOutputStream out = (FSDataOutputStream) builder.build();
    ((java.io.ByteArrayOutputStream) underlyingStream()).writeTo(out);
    try {{
      out.close();
    }} catch (java.io.IOException error) {{
      if (!overwrite && error.getClass().getSimpleName().equals("RemoteFileChangedException")) {{
        FileAlreadyExistsException told = new FileAlreadyExistsException(path + " was written by another job");
        told.initCause(error);
        throw told;
      }}
      throw error;
    }}
  }}
}}
""",
    _FILES: f"""
package {_PACKAGE};
import org.apache.hadoop.fs.*;
public class {_FILES} extends FileSystemBasedCheckpointFileManager {{
  private volatile long asked = Long.MIN_VALUE;
  public {_FILES}(Path path, org.apache.hadoop.conf.Configuration configuration) {{ super(path, configuration); }}
  private static long number(Path path) {{
    String name = path.getName();
    if (name.isEmpty() || name.length() > 18) return -1;
    for (int at = 0; at < name.length(); at++) if (!Character.isDigit(name.charAt(at))) return -1;
    return Long.parseLong(name);
  }}
  public CheckpointFileManager.CancellableFSDataOutputStream createAtomic(Path path, boolean overwrite) {{
    asked = number(path);
    return new {_STREAM}(fs(), path, overwrite);
  }}
  public boolean exists(Path path) {{
    return number(path) > 0 && number(path) == asked + 1 ? false : super.exists(path);
  }}
  public void delete(Path path) {{
    if (number(path) < 0) {{
      super.delete(path);
      return;
    }}
    try {{
      BulkDelete some = fs().createBulkDelete(path.getParent());
      try {{
        some.bulkDelete(java.util.Collections.singletonList(path));
      }} finally {{
        some.close();
      }}
    }} catch (java.io.IOException error) {{
      throw new java.io.UncheckedIOException(error);
    }}
  }}
}}
""",
}


def use(spark: SparkSession) -> None:
    """Let this session's queries write each file of their logs by one conditional request.

    If that fails, log a warning. Spark then writes and renames: the logs are right too, except if two jobs run at once,
    and each batch takes a second longer.
    """
    jvm: Any = spark.sparkContext._jvm
    try:
        *_, name = compiled(jvm, _PARENT, _SOURCES)
        spark.conf.set(PROPERTY, name)
    except Py4JError as error:
        log.warning(
            "Spark writes its logs to the bucket by copies, which takes a second longer for each batch, because its JVM"
            " refused a class of incsnap: %s",
            error,
        )
