-- Run once, when the data folder is empty.
CREATE DATABASE inventory;
USE inventory;

-- A row inserted here is a signal. incsnap reads it from the binlog and never writes to it.
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
-- REPLICATION SLAVE reads the binlog, REPLICATION CLIENT asks for its end. Both are global rights.
GRANT REPLICATION SLAVE, REPLICATION CLIENT ON *.* TO incsnap@'%';
-- Chunks are read with SELECT. No RELOAD and no LOCK TABLES: nothing is ever locked.
GRANT SELECT ON inventory.* TO incsnap@'%';
-- Only for `incsnap signal` by a row; the job itself writes nothing.
GRANT INSERT ON inventory.incsnap_signal TO incsnap@'%';
