"""The table of the figures: 10 columns, a Debezium JSON record of about 780 bytes."""

from __future__ import annotations

from typing import Any

from pymysql.connections import Connection

CREATE = """
CREATE TABLE {name} (
  id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
  customer_id INT NOT NULL,
  status ENUM('new','paid','shipped','done') NOT NULL,
  amount DECIMAL(12,2) NOT NULL,
  qty INT NULL,
  note VARCHAR(255) NOT NULL,
  sku CHAR(16) NOT NULL,
  created_at DATETIME(3) NOT NULL,
  updated_at TIMESTAMP(3) NULL,
  ratio DOUBLE NOT NULL
) CHARACTER SET utf8mb4
"""
_FILL = """
INSERT INTO {name} (id, customer_id, status, amount, qty, note, sku, created_at, updated_at, ratio)
WITH RECURSIVE digits (d) AS (SELECT 0 UNION ALL SELECT d + 1 FROM digits WHERE d < 99)
SELECT n + 1, n % 9973, 1 + n % 4, (n % 1000000) / 100, IF(n % 7, n % 50, NULL), RPAD(SHA2(n, 256), 96, 'x'),
       LPAD(HEX(n), 16, 'S'), TIMESTAMPADD(SECOND, n, '2024-01-01'),
       IF(n % 3, TIMESTAMPADD(SECOND, n, '2024-06-01'), NULL), n / 7
FROM (SELECT a.d * 10000 + b.d * 100 + c.d + {first} AS n FROM digits a, digits b, digits c
      WHERE a.d < 10 AND a.d * 10000 + b.d * 100 + c.d < {rows}) numbers
"""


def fill(connection: Connection[Any], name: str, rows: int) -> None:
    """Creates the table and fills it, a transaction for each 100,000 rows (about 4 s for a million)."""
    with connection.cursor() as cursor:
        cursor.execute(CREATE.format(name=name))
        for first in range(0, rows, 100_000):
            cursor.execute(_FILL.format(name=name, first=first, rows=min(100_000, rows - first)))


def update_all(connection: Connection[Any], name: str, rows: int, transaction_rows: int = 1_000) -> None:
    """Changes every row once, ``transaction_rows`` rows a transaction."""
    with connection.cursor() as cursor:
        for first in range(0, rows, transaction_rows):
            cursor.execute(
                f"UPDATE {name} SET qty = COALESCE(qty, 0) + 1 WHERE id > %s AND id <= %s",
                (first, first + transaction_rows),
            )
