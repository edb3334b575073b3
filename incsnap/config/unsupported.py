"""Settings of Debezium and Kafka Connect that would change records and that incsnap does not support.

Without them a consumer would get records that it does not expect. So they stop the start, with their names in the
error. `incsnap.ignore` accepts that a setting has no effect. `transforms` and `converters` check their own settings.
"""

from __future__ import annotations

from incsnap.config.confluent_cloud import CLASSES
from incsnap.config.listed import IGNORE
from incsnap.config.names import words
from incsnap.config.older_names import LISTS
from incsnap.config.patterns import split_list
from incsnap.config.reader import SettingsReader

_STRUCT_MAKER = "io.debezium.connector.mysql.mysqlsourceinfostructmaker"
#: Unsupported settings. Each has the difference that it would have made, and the value that asks for what incsnap does
#: anyway. That value is in lower case, and "" if there is none.
CHANGE_RECORDS = {
    "post.processors": ("records would not pass {value}", ""),
    "header.converter": ("{value} would not write headers", "org.apache.kafka.connect.storage.simpleheaderconverter"),
    "gtid.source.includes": ("changes of other servers than {value} would be sent", ".*"),
    "gtid.source.excludes": ("changes of {value} would be sent", ""),
    "table.ignore.builtin": ("MySQL's own tables would not be captured", "true"),
    "transaction.metadata.factory": ("{value} would not describe transactions", ""),
    "sourceinfo.struct.maker": ("{value} would not make source blocks", _STRUCT_MAKER),
    "snapshot.query.mode": ("rows that {value} leaves out would be sent", "select_all"),
    "topic.creation.enable": ("topics would still be created", "true"),
    "guardrail.collections.limit.action": ("more tables than guardrail.collections.max would be captured", "warn"),
}
_OF_MYSQL = words(
    "io.debezium.connector.mysql.MySqlConnector io.debezium.connector.mysql.legacy.MySqlConnector MySqlConnector"
)
#: The guardrail's action and its limit. The default limit of 0 tables means no limit.
_LIMIT_ACTION, _LIMIT = "guardrail.collections.limit.action", "guardrail.collections.max"
#: Settings whose own modules check `incsnap.ignore`.
_OWN_CHECKS = ("transforms", "converters")

#: Prefix of a connector's settings in Debezium Server's file, and the name of the place that it writes to.
_SERVER, _SINK = "debezium.source.", "debezium.sink.type"


def refuse(reader: SettingsReader) -> None:
    """Add a problem to `reader` for each setting that must stop the start."""
    connector = reader.text("connector.class")
    if connector in CLASSES:
        reader.problem(
            "connector.class",
            "Debezium's: it is a managed connector of Confluent Cloud. `incsnap config --fix FILE` prints the file with"
            " Debezium's names, and says what to put into the environment",
        )
    elif connector and connector not in _OF_MYSQL:
        reader.problem("connector.class", "a connector for MySQL; this job reads MySQL's binlog")
    if of_debezium_server(reader):
        reader.problems.append(of_server(reader.text(_SINK, "kafka")))
    for old, new in LISTS.items():
        if reader.given(old):
            reader.problems.append(f"{old}: a name of Debezium 1. Write {new}, which takes the same patterns")
    ignored = split_list(reader[IGNORE])
    asked_for = [name for name in CHANGE_RECORDS if _asks(reader, name)]
    idle = [name for name in ignored if name not in asked_for and name.partition(".")[0] not in _OWN_CHECKS]
    if idle:
        reader.warnings.append(f"{IGNORE}: no need to ignore {', '.join(idle)}")
    for name in (name for name in asked_for if name not in ignored):
        missed = CHANGE_RECORDS[name][0].format(value=reader.text(name))
        reader.problems.append(
            f"{name}: not supported, {missed}. Remove it, or accept this with {IGNORE}={','.join([*ignored, name])}"
        )


def of_debezium_server(reader: SettingsReader) -> bool:
    """Return True if the file is one of Debezium Server, whose settings all have other names than a connector's."""
    return not reader.given("connector.class") and any(name.startswith(_SERVER) for name in reader.names())


def of_server(sink: str) -> str:
    """Return the problem of a file of Debezium Server that writes to `sink`."""
    if sink != "kafka":
        return f"{_SINK}: this is a file of Debezium Server that writes to {sink}. incsnap writes to Kafka alone"
    return (
        f"{_SERVER}*: this is a file of Debezium Server. Write these names without {_SERVER}, debezium.transforms* as"
        " transforms*, debezium.format.value as value.converter, and the sink's producer as bootstrap.servers and"
        " producer.*"
    )


def _asks(reader: SettingsReader, name: str) -> bool:
    """Whether the setting `name` asks for something that incsnap does not support."""
    if name == _LIMIT_ACTION and reader.text(_LIMIT, "0") == "0":
        return False
    return reader.given(name) and reader.text(name).lower() != CHANGE_RECORDS[name][1]
