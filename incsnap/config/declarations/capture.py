"""Declarations: settings that each job must decide, the MySQL server, and what is captured."""

from __future__ import annotations

from incsnap.config.declarations.kinds import (
    BROKERS,
    COLUMNS,
    FLAG,
    OPERATIONS,
    REGEXES,
    TABLE,
    TEXT,
    TOPIC,
    milliseconds,
    one_of,
    pem,
    whole,
)
from incsnap.config.declarations.setting import Setting

_TO_CA = "keytool -exportcert -rfc -keystore STORE -alias ALIAS -file ca.pem"
_TO_CERTIFICATE = (
    "keytool -importkeystore -srckeystore STORE -destkeystore client.p12 -deststoretype PKCS12, and then (a PKCS12"
    " store by this alone) openssl pkcs12 -in client.p12 -out client.pem"
)

# A table reads better in long lines.
# fmt: off
DECIDED = (
    Setting("database.hostname", TEXT, "", "The MySQL server. It may be a replica.", "127.0.0.1", is_needed=True),
    Setting("database.user", TEXT, "", "The MySQL user, with REPLICATION SLAVE, REPLICATION CLIENT and SELECT.",
            "incsnap", see="mysql", is_needed=True),
    Setting("database.password", TEXT, "", "The password of this user.", "${env:MYSQL_PASSWORD}"),
    Setting("incsnap.database.login", one_of("password", "rds-iam"), "password",
            "rds-iam: a token of Amazon's IAM takes the place of the password.", "rds-iam", see="logins-to-amazon"),
    Setting("topic.prefix", TOPIC, "",
            "First part of all topic names, and key of Kafka signals. One job for each prefix.",
            "shop", see="one-job-of-a-prefix", is_needed=True),
    Setting("database.include.list", REGEXES, "", "Databases to capture. A pattern must match the whole name.",
            "inventory", unset="all but MySQL's own"),
    Setting("signal.data.collection", TABLE, "", "The signal table. Without it the channel `source` is off.",
            "inventory.incsnap_signal", see="signals"),
    Setting("bootstrap.servers", BROKERS, "", "The Kafka brokers.", "127.0.0.1:9092", is_needed=True),
    Setting("checkpoint.location", TEXT, "", "Folder of the job's state: a path, or a URI that Spark and pyarrow know.",
            "/var/lib/incsnap/shop", unset="`~/.local/state/incsnap/<topic.prefix>`", see="the-checkpoint"),
)

SERVER = (
    Setting("database.port", whole(1, 65535), "3306", "Port of the MySQL server."),
    Setting("database.server.id", whole(1, 2**32 - 1), "",
            "Id of the replication connection, unique among all replicas.",
            "5400", unset="from `topic.prefix` (Debezium draws it)", see="the-server-id"),
    Setting("database.ssl.mode", one_of("disabled", "preferred", "required", "verify_ca", "verify_identity"),
            "preferred", "Whether the connection to MySQL is encrypted and verified."),
    Setting("database.ssl.truststore", pem(_TO_CA), "", "Certificate of the authority.", "/etc/incsnap/ca.pem"),
    Setting("database.ssl.keystore", pem(_TO_CERTIFICATE), "", "Certificate and key of the client, in one file.",
            "/etc/incsnap/client.pem"),
    Setting("database.ssl.keystore.password", TEXT, "", "Password of the client's key.", "${env:KEY_PASSWORD}"),
    Setting("connect.timeout.ms", milliseconds(1, 3_600_000), "30000", "Longest connection attempt."),
    Setting("database.query.timeout.ms", milliseconds(0, 86_400_000), "600000",
            "Longest SELECT of a snapshot. 0: no limit.", see="chunks-and-their-pace"),
)

CAPTURE = (
    Setting("incsnap.online.ddl.tables", one_of("ignore", "capture"), "ignore",
            "Whether tables that gh-ost, pt-online-schema-change and spirit make are left out, or captured like any"
            " other.", "capture", see="online-ddl.md"),
    Setting("database.exclude.list", REGEXES, "", "Databases to leave out. Not with database.include.list.", "test_.*"),
    Setting("table.include.list", REGEXES, "", "Tables (`db.table`) to capture. The signal table is always captured.",
            r"inventory\\.(orders|customers)", unset="all"),
    Setting("table.exclude.list", REGEXES, "", "Tables to leave out. Not with table.include.list.",
            r"inventory\\.audit_.*"),
    Setting("column.include.list", COLUMNS, "", "Columns (`db.table.column`) to write.",
            r"inventory\\.orders\\.(id|status)", unset="all", see="columns-keys-and-names"),
    Setting("column.exclude.list", COLUMNS, "", "Columns to leave out. Not with column.include.list.", r".*\\.ssn"),
    Setting("skipped.operations", OPERATIONS, "t",
            "Operations to leave out: c (insert), u (update), d (delete), t (TRUNCATE)."),
    Setting("tombstones.on.delete", FLAG, "true", "Send a record without a value after each deletion."),
    Setting("skip.messages.without.change", FLAG, "false",
            "Leave out updates that change no written column (compared as written: cut, masked)."),
    Setting("include.query", FLAG, "false",
            "Put the statement into `source.query`. Needs binlog_rows_query_log_events=ON.",
            see="statements-and-transactions"),
)
# fmt: on
