"""The tables of the benchmark. SQL fills and changes them inside the server, so that no client takes processor time.

`orders` has 10 columns. Its Debezium JSON records have about 780 bytes. Each other table differs from `orders` in one
respect.
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
# Ten columns of each kind and twenty further integers, as wide tables of applications have.
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
    """A kind of table. Its expressions give row number `n`, counted from 0."""

    columns: str  #: definitions of all columns but the key's
    values: str  #: expressions of these columns
    key: str = "id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,"  #: definitions of the key's columns
    key_values: str = "n + 1"  #: expressions of the key's columns

    def create(self, connection: Connection[Cursor], name: str, rows: int) -> None:
        """Create the table and fill it, in transactions of 100,000 rows. A million `orders` take about 4 s."""
        with connection.cursor() as cursor:
            cursor.execute(f"CREATE TABLE {name} ({self.key} {self.columns}) CHARACTER SET utf8mb4")
        self.insert(connection, name, 0, rows)

    def insert(self, connection: Connection[Cursor], name: str, first: int, rows: int, each: int = _FILL_ROWS) -> None:
        """Insert `rows` rows, from number `first` on, in transactions of `each` rows (at most 100,000)."""
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
    """Return a SELECT that gives `count` rows (at most 100,000) of `n`, from `first` on."""
    return f"""
        WITH RECURSIVE digits (d) AS (SELECT 0 UNION ALL SELECT d + 1 FROM digits WHERE d < 99)
        SELECT {first} + a.d * 10000 + b.d * 100 + c.d AS n FROM digits a, digits b, digits c
        WHERE a.d < 10 AND a.d * 10000 + b.d * 100 + c.d < {count}
    """
