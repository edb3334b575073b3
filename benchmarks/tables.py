"""The tables of the benchmark, filled and changed inside the server, so that no client shares its processors.

``orders`` has 10 columns and makes Debezium JSON records of about 780 bytes; the others differ from it in one thing.
"""

from __future__ import annotations

from dataclasses import dataclass

from pymysql.connections import Connection
from pymysql.cursors import Cursor

_FILL_ROWS = 100_000

_ORDER_COLUMNS = """
  customer_id INT NOT NULL,
  status ENUM('new','paid','shipped','done') NOT NULL,
  amount DECIMAL(12,2) NOT NULL,
  qty INT NULL,
  note VARCHAR(255) NOT NULL,
  sku CHAR(16) NOT NULL,
  created_at DATETIME(3) NOT NULL,
  updated_at TIMESTAMP(3) NULL,
  ratio DOUBLE NOT NULL
"""
_ORDER_VALUES = """
  n % 9973, 1 + n % 4, (n % 1000000) / 100, IF(n % 7, n % 50, NULL), RPAD(SHA2(n, 256), 96, 'x'),
  LPAD(HEX(n), 16, 'S'), TIMESTAMPADD(SECOND, n, '2024-01-01'),
  IF(n % 3, TIMESTAMPADD(SECOND, n, '2024-06-01'), NULL), n / 7
"""
# Ten of each kind, then twenty integers more: what wide tables of applications look like.
_WIDE = [
    *((f"i{number} INT NOT NULL", f"n + {number}") for number in range(19)),
    *((f"b{number} BIGINT NULL", f"IF(n % {number + 2}, n * {number + 3}, NULL)") for number in range(10)),
    *((f"s{number} VARCHAR(40) NOT NULL", f"CONCAT('text {number} ', n)") for number in range(10)),
    *((f"d{number} DECIMAL(10,2) NOT NULL", f"(n % 100000) / {number + 1}") for number in range(10)),
    *((f"t{number} DATETIME(3) NULL", f"TIMESTAMPADD(MINUTE, n, '2024-01-0{number + 1}')") for number in range(9)),
    ("qty INT NULL", "n % 50"),
]


@dataclass(frozen=True, slots=True)
class Design:
    """A kind of table. ``key``: its definition, and with ``values`` the expressions of row number ``n`` (from 0)."""

    columns: str
    values: str
    key: str = "id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,"
    key_values: str = "n + 1"

    def create(self, connection: Connection[Cursor], name: str, rows: int) -> None:
        """Create the table and fill it, a transaction for each 100,000 rows (about 4 s for a million ``orders``)."""
        with connection.cursor() as cursor:
            cursor.execute(f"CREATE TABLE {name} ({self.key} {self.columns}) CHARACTER SET utf8mb4")
        self.insert(connection, name, 0, rows)

    def insert(self, connection: Connection[Cursor], name: str, first: int, rows: int, each: int = _FILL_ROWS) -> None:
        """Insert the rows number ``first`` and on, ``each`` of them (100,000 at most) a transaction."""
        with connection.cursor() as cursor:
            for begin in range(first, first + rows, each):
                count = min(each, first + rows - begin)
                source = f"({_numbers(begin, count)}) numbers"
                cursor.execute(f"INSERT INTO {name} SELECT {self.key_values}, {self.values} FROM {source}")


ORDERS = Design(_ORDER_COLUMNS, _ORDER_VALUES)
NARROW = Design("qty INT NULL, note VARCHAR(255) NOT NULL", "n % 50, CONCAT('note ', n)")
WIDE = Design(", ".join(column for column, _ in _WIDE), ", ".join(value for _, value in _WIDE))
COMPOSITE = Design(
    _ORDER_COLUMNS + ", PRIMARY KEY (tenant, code)",
    _ORDER_VALUES,
    key="tenant INT NOT NULL, code VARCHAR(24) NOT NULL,",
    key_values="n % 97, CONCAT('code-', n)",
)


def _numbers(first: int, count: int) -> str:
    """A SELECT of ``n`` from ``first`` on, 100,000 at most."""
    return f"""
        WITH RECURSIVE digits (d) AS (SELECT 0 UNION ALL SELECT d + 1 FROM digits WHERE d < 99)
        SELECT {first} + a.d * 10000 + b.d * 100 + c.d AS n FROM digits a, digits b, digits c
        WHERE a.d < 10 AND a.d * 10000 + b.d * 100 + c.d < {count}
    """
