"""The jars of Hadoop's ``s3a``, which PySpark does not bring, fetched when the first job asks for them.

``hadoop-aws`` wants all of AWS's library (600 MB); what it uses of that is 11 MB, and what Spark has is left out. They
are in the user's cache directory from then on, so a start asks no repository: Spark's own way (``spark.jars.packages``)
resolves them anew each time, in ten seconds. Only the driver needs them: its tasks read the bucket themselves.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
from pathlib import Path
from xml.sax.saxutils import quoteattr

from filelock import FileLock
from pyspark.find_spark_home import _find_spark_home

from incsnap.config.user_folders import cache_folder
from incsnap.errors import ConfigError
from incsnap.spark.java import spark_java

#: Of the Hadoop that is in PySpark 4.3, and the release of AWS's library that it was built with.
_HADOOP, _AWS = "3.5.0", "2.35.4"
_NAME = f"s3a-{_HADOOP}-{_AWS}"
_DEPENDENCIES = (
    ("org.apache.hadoop", "hadoop-aws", _HADOOP),
    *(("software.amazon.awssdk", name, _AWS) for name in ("s3", "s3-transfer-manager", "sts")),
)
#: Spark has them, or a checkpoint needs none of it.
_EXCLUDED = (
    ("software.amazon.awssdk", "bundle"),
    ("org.wildfly.openssl", "*"),
    *((group, "*") for group in ("io.netty", "org.slf4j", "commons-logging", "commons-codec")),
    ("org.apache.httpcomponents", "*"),
)
_SECONDS = 600
_HINT = (
    "Name the jars yourself: spark.driver.extraClassPath=FOLDER/* with hadoop-aws of Spark's Hadoop and AWS's library,"
    " or spark.jars.packages. Behind a mirror of Maven Central set DEFAULT_ARTIFACT_REPOSITORY."
)


def s3a_jars() -> Path:
    """The folder of them. Raises ``ConfigError`` where they cannot be fetched."""
    place = cache_folder() / _NAME
    if place.is_dir():
        return place
    place.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(f"{place}.lock"):
        if not place.is_dir():
            with tempfile.TemporaryDirectory(prefix=f"{_NAME}-", dir=place.parent) as folder:
                _fetch(Path(folder))
                os.rename(Path(folder, "jars"), place)
    return place


def _fetch(folder: Path) -> None:
    java = spark_java()
    ivy = next(iter(Path(_find_spark_home(), "jars").glob("ivy-*.jar")), None)
    if java is None or ivy is None:
        raise ConfigError("The jars of s3a cannot be fetched: there is no java, or no Ivy among Spark's jars", _HINT)
    repository = os.environ.get("DEFAULT_ARTIFACT_REPOSITORY")
    root = f" root={quoteattr(repository)}" if repository else ""
    settings, module = folder / "settings.xml", folder / "ivy.xml"
    settings.write_text(
        '<ivysettings><settings defaultResolver="maven"/><timeout-constraints><timeout-constraint name="bounded"'
        ' connectionTimeout="20000" readTimeout="60000"/></timeout-constraints><resolvers>'
        f'<ibiblio name="maven" m2compatible="true" timeoutConstraint="bounded"{root}/></resolvers></ivysettings>'
    )
    dependencies = "".join(f'<dependency org="{g}" name="{n}" rev="{v}" conf="default"/>' for g, n, v in _DEPENDENCIES)
    exclusions = "".join(f'<exclude org="{group}" module="{name}"/>' for group, name in _EXCLUDED)
    module.write_text(
        '<ivy-module version="2.0"><info organisation="incsnap" module="s3a"/>'
        f"<dependencies>{dependencies}{exclusions}</dependencies></ivy-module>"
    )
    command = [java, "-jar", str(ivy), "-settings", str(settings), "-ivy", str(module), "-cache", str(folder / "ivy")]
    command += ["-types", "jar", "bundle", "-retrieve", f"{folder}/jars/[artifact]-[revision].[ext]"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=_SECONDS, check=False)
        output = [line.strip() for line in (done.stdout + done.stderr).splitlines() if line.strip()]
        failed = done.returncode != 0
    except subprocess.TimeoutExpired:
        output, failed = [f"not within {_SECONDS} s"], True
    if failed or not any(Path(folder, "jars").glob("hadoop-aws-*.jar")):
        last = output[-1] if output else ""
        reason = next((line for line in output if "UNRESOLVED" in line or "not found" in line), last)
        raise ConfigError(f"The jars of s3a cannot be fetched from the Maven repository: {reason}", _HINT)
