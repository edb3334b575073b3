-- Runs once, when the data folder is empty.
CREATE DATABASE inventory;
USE inventory;

-- A row inserted here is a signal. incsnap reads the row from the binlog and never writes to this table.
CREATE TABLE incsnap_signal (
  id   VARCHAR(64) PRIMARY KEY,
  type VARCHAR(32) NOT NULL,
  data VARCHAR(2048)
);

CREATE TABLE customers (
  id         BIGINT UNSIGNED AUTO_INCREMENT PRIMARY KEY,
  name       VARCHAR(100) NOT NULL,
  balance    DECIMAL(12, 2) NOT NULL DEFAULT 0,
  changed_at TIMESTAMP(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6) ON UPDATE CURRENT_TIMESTAMP(6)
);
INSERT INTO customers (name, balance) VALUES ('Ada', 10.50), ('Grace', 20.00), ('Edsger', 30.25);

CREATE USER incsnap@'%' IDENTIFIED BY 'incsnap';
-- REPLICATION SLAVE allows reading the binlog, REPLICATION CLIENT asking for its end. Both are global rights.
GRANT REPLICATION SLAVE, REPLICATION CLIENT ON *.* TO incsnap@'%';
-- Chunks are read with SELECT. RELOAD and LOCK TABLES are not needed, because incsnap never locks a table.
GRANT SELECT ON inventory.* TO incsnap@'%';
-- Only for `incsnap signal` by a row. The job itself writes nothing.
GRANT INSERT ON inventory.incsnap_signal TO incsnap@'%';
