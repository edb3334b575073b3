"""Settings of Debezium and Kafka Connect that would change the records, and that nobody here obeys.

Without them a consumer would get other records than it was written for, so they stop the start, with their names.
``incsnap.ignore`` says that one may go without effect. ``transforms`` and ``converters`` refuse each of theirs by name.
"""

from __future__ import annotations

from incsnap.config.names import words
from incsnap.config.patterns import split_list
from incsnap.config.reading import SettingsReader

#: Names, with what the records would miss.
CHANGE_RECORDS = {
    "post.processors": "records would not go through {value}",
    "header.converter": "headers would not be written by {value}",
    "gtid.source.includes": "changes of other servers than {value} would be sent",
    "gtid.source.excludes": "changes of {value} would be sent",
    "table.ignore.builtin": "tables of MySQL's own would not be captured",
    "transaction.metadata.factory": "transactions would not be described by {value}",
    "sourceinfo.struct.maker": "source blocks would not be made by {value}",
    "snapshot.query.mode": "rows that {value} leaves out would be sent",
    "extended.headers.enabled": "records would lack the headers __debezium.context.*",
    "topic.creation.enable": "topics would be made all the same",
    "guardrail.collections.limit.action": "more tables than guardrail.collections.max would be captured",
}
#: Where this is the value, it asks for what is done anyway.
_HARMLESS = {
    "table.ignore.builtin": "true",
    "header.converter": "org.apache.kafka.connect.storage.simpleheaderconverter",
    "gtid.source.includes": ".*",
    "sourceinfo.struct.maker": "io.debezium.connector.mysql.mysqlsourceinfostructmaker",
    "snapshot.query.mode": "select_all",
    "extended.headers.enabled": "false",
    "topic.creation.enable": "true",
    "guardrail.collections.limit.action": "warn",
}
#: Names of Debezium 1, which Debezium 3 ignores: what they were to leave out would be sent.
_RENAMED = {
    "database.whitelist": "database.include.list",
    "database.blacklist": "database.exclude.list",
    "table.whitelist": "table.include.list",
    "table.blacklist": "table.exclude.list",
    "column.whitelist": "column.include.list",
    "column.blacklist": "column.exclude.list",
}
_OF_MYSQL = words(
    "io.debezium.connector.mysql.MySqlConnector io.debezium.connector.mysql.legacy.MySqlConnector MySqlConnector"
)
#: What the action of the guardrail is for; 0 tables, the default, are no limit.
_LIMIT_ACTION, _LIMIT = "guardrail.collections.limit.action", "guardrail.collections.max"
IGNORE = "incsnap.ignore"
#: What may be ignored of these is told where they are read.
_ELSEWHERE = ("transforms", "converters")

_OF_CONFLUENT_CLOUD = frozenset(("MySqlCdcSource", "MySqlCdcSourceV2"))
#: What the names of a connector begin with in Debezium Server's file.
_SERVER = "debezium.source."


def refuse(reading: SettingsReader) -> None:
    """Each given name that stops the start becomes a problem of ``reading``."""
    connector = reading.text("connector.class")
    if connector in _OF_CONFLUENT_CLOUD:
        reading.problem(
            "connector.class",
            "Debezium's: it is a managed connector of Confluent Cloud. Write"
            " io.debezium.connector.mysql.MySqlConnector, kafka.* as bootstrap.servers and producer.*, output.*.format"
            " as key.converter and value.converter",
        )
    elif connector and connector not in _OF_MYSQL:
        reading.problem("connector.class", "a connector for MySQL; this job reads MySQL's binlog")
    if any(name.startswith(_SERVER) for name in reading.names()):
        reading.problems.append(
            f"{_SERVER}*: of Debezium Server; write these names without {_SERVER}, its debezium.transforms as"
            " transforms, and its sink's producer as bootstrap.servers and producer.*"
        )
    for old, new in _RENAMED.items():
        if reading.given(old):
            reading.problems.append(f"{old}: a name of Debezium 1; write {new}, which takes the same patterns")
    ignored = split_list(reading.text(IGNORE))
    asked_for = [name for name in CHANGE_RECORDS if _asks(reading, name)]
    idle = [name for name in ignored if name not in asked_for and name.partition(".")[0] not in _ELSEWHERE]
    if idle:
        reading.warnings.append(f"{IGNORE}: nothing is to be ignored of {', '.join(idle)}")
    for name in (name for name in asked_for if name not in ignored):
        missed = CHANGE_RECORDS[name].format(value=reading.text(name))
        reading.problems.append(
            f"{name}: not supported, {missed}; take it out, or accept that with {IGNORE}={','.join([*ignored, name])}"
        )


def _asks(reading: SettingsReader, name: str) -> bool:
    """Whether the setting ``name`` asks for something that nobody here does."""
    if name == _LIMIT_ACTION and reading.text(_LIMIT, "0") == "0":
        return False
    return reading.given(name) and reading.text(name).lower() != _HARMLESS.get(name)
