-- Every type of MySQL with its edges. A statement ends with ";" at the end of a line.
-- The database is there and chosen; the session is UTC, utf8mb4, with the SQL mode the statements set.
SET SESSION sql_mode = '';

-- Integers and bits ------------------------------------------------------------------------------------------------
CREATE TABLE integers (
  id INT PRIMARY KEY,
  t TINYINT, tu TINYINT UNSIGNED, tz TINYINT(3) UNSIGNED ZEROFILL,
  s SMALLINT, su SMALLINT UNSIGNED, sz SMALLINT(5) ZEROFILL,
  m MEDIUMINT, mu MEDIUMINT UNSIGNED, mz MEDIUMINT(8) ZEROFILL,
  i INT, iu INT UNSIGNED, iz INT(9) ZEROFILL,
  b BIGINT, bu BIGINT UNSIGNED, bz BIGINT(20) ZEROFILL,
  flag BOOL, one TINYINT(1), one_u TINYINT(1) UNSIGNED,
  n INT NOT NULL
);

CREATE TABLE bits (
  id INT PRIMARY KEY,
  b1 BIT(1), b8 BIT(8), b9 BIT(9), b33 BIT(33), b64 BIT(64), b1n BIT(1) NOT NULL, b5n BIT(5) NOT NULL, plain BIT
);

-- Decimals and floating point --------------------------------------------------------------------------------------
CREATE TABLE decimals (
  id INT PRIMARY KEY,
  d65 DECIMAL(65,30), d10 DECIMAL(10,0), d38 DECIMAL(38,10), d5 DECIMAL(5,2), du DECIMAL(8,3) UNSIGNED,
  plain DECIMAL, d65i DECIMAL(65,0), d30 DECIMAL(30,30), n DECIMAL(9,4) NOT NULL,
  num NUMERIC(4,1), d18 DECIMAL(18,9), d19 DECIMAL(19,0)
);

CREATE TABLE floats (
  id INT PRIMARY KEY,
  f FLOAT, f72 FLOAT(7,2), f20 FLOAT(20), f30 FLOAT(30), fu FLOAT UNSIGNED, d DOUBLE, d123 DOUBLE(12,3), r REAL,
  dp DOUBLE PRECISION UNSIGNED, fn FLOAT NOT NULL, dn DOUBLE NOT NULL
);

CREATE TABLE filled (id INT PRIMARY KEY, t TINYINT ZEROFILL, i INT ZEROFILL, b BIGINT(25) ZEROFILL, d DECIMAL(7,3) ZEROFILL, f FLOAT(9,2) ZEROFILL, do DOUBLE ZEROFILL);

-- Text ---------------------------------------------------------------------------------------------------------------
CREATE TABLE texts (
  id INT PRIMARY KEY,
  c CHAR(10), v VARCHAR(40), v0 VARCHAR(0), tt TINYTEXT, t TEXT, mt MEDIUMTEXT, lt LONGTEXT, n VARCHAR(20) NOT NULL,
  nc NATIONAL CHAR(5), nv NATIONAL VARCHAR(5), c0 CHAR(0), vb VARCHAR(20) BINARY
) DEFAULT CHARSET = utf8mb4;

CREATE TABLE charsets (
  id INT PRIMARY KEY,
  latin1 VARCHAR(40) CHARACTER SET latin1, latin1_c CHAR(8) CHARACTER SET latin1, latin1_t TEXT CHARACTER SET latin1,
  ascii VARCHAR(40) CHARACTER SET ascii,
  utf8mb3 VARCHAR(40) CHARACTER SET utf8mb3, utf8mb3_c CHAR(8) CHARACTER SET utf8mb3, utf8mb4 VARCHAR(40) CHARACTER SET utf8mb4,
  gbk VARCHAR(40) CHARACTER SET gbk, gbk_c CHAR(8) CHARACTER SET gbk, gbk_t TEXT CHARACTER SET gbk,
  gb2312 VARCHAR(40) CHARACTER SET gb2312, gb18030 VARCHAR(40) CHARACTER SET gb18030, big5 VARCHAR(40) CHARACTER SET big5,
  sjis VARCHAR(40) CHARACTER SET sjis, sjis_c CHAR(8) CHARACTER SET sjis, cp932 VARCHAR(40) CHARACTER SET cp932,
  ujis VARCHAR(40) CHARACTER SET ujis, eucjpms VARCHAR(40) CHARACTER SET eucjpms, euckr VARCHAR(40) CHARACTER SET euckr,
  utf16 VARCHAR(40) CHARACTER SET utf16, utf16_c CHAR(8) CHARACTER SET utf16, utf16le VARCHAR(40) CHARACTER SET utf16le,
  utf32 VARCHAR(40) CHARACTER SET utf32, ucs2 VARCHAR(40) CHARACTER SET ucs2, ucs2_t TEXT CHARACTER SET ucs2,
  cp1251 VARCHAR(40) CHARACTER SET cp1251, koi8r VARCHAR(40) CHARACTER SET koi8r, koi8u VARCHAR(40) CHARACTER SET koi8u,
  cp866 VARCHAR(40) CHARACTER SET cp866, cp1250 VARCHAR(40) CHARACTER SET cp1250, cp1257 VARCHAR(40) CHARACTER SET cp1257,
  latin2 VARCHAR(40) CHARACTER SET latin2, latin5 VARCHAR(40) CHARACTER SET latin5, latin7 VARCHAR(40) CHARACTER SET latin7,
  greek VARCHAR(40) CHARACTER SET greek, hebrew VARCHAR(40) CHARACTER SET hebrew, cp1256 VARCHAR(40) CHARACTER SET cp1256,
  tis620 VARCHAR(40) CHARACTER SET tis620, cp850 VARCHAR(40) CHARACTER SET cp850, cp852 VARCHAR(40) CHARACTER SET cp852,
  macroman VARCHAR(40) CHARACTER SET macroman, bin_c CHAR(4) CHARACTER SET binary, bin_v VARCHAR(8) CHARACTER SET binary,
  bin_t TEXT CHARACTER SET binary
);

-- Bytes --------------------------------------------------------------------------------------------------------------
CREATE TABLE bytes (
  id INT PRIMARY KEY,
  b BINARY(5), b1 BINARY, vb VARBINARY(20), tb TINYBLOB, bl BLOB, mb MEDIUMBLOB, lb LONGBLOB, n VARBINARY(4) NOT NULL,
  bn BINARY(3) NOT NULL
);

CREATE TABLE large (id INT PRIMARY KEY, lt LONGTEXT CHARACTER SET utf8mb4, lb LONGBLOB, j JSON, mt MEDIUMTEXT CHARACTER SET latin1);

-- ENUM and SET -------------------------------------------------------------------------------------------------------
CREATE TABLE choices (
  id INT PRIMARY KEY,
  e ENUM('a','b','c'), e2 ENUM('x,y','it''s','back\\slash','"quoted"','',' spaced','naïve €') CHARACTER SET utf8mb4,
  s SET('a','b','c'), s2 SET('it''s','back\\slash','"quoted"','naïve €') CHARACTER SET utf8mb4,
  en ENUM('one','two') NOT NULL, sn SET('one','two') NOT NULL,
  el ENUM('é','ü') CHARACTER SET latin1, eg ENUM('中','文') CHARACTER SET gbk
);

CREATE TABLE wide_set (id INT PRIMARY KEY, s SET('v01','v02','v03','v04','v05','v06','v07','v08','v09','v10','v11','v12',
  'v13','v14','v15','v16','v17','v18','v19','v20','v21','v22','v23','v24','v25','v26','v27','v28','v29','v30','v31','v32',
  'v33','v34','v35','v36','v37','v38','v39','v40','v41','v42','v43','v44','v45','v46','v47','v48','v49','v50','v51','v52',
  'v53','v54','v55','v56','v57','v58','v59','v60','v61','v62','v63','v64'));

-- Times --------------------------------------------------------------------------------------------------------------
CREATE TABLE dates (id INT PRIMARY KEY, d DATE, dn DATE NOT NULL, dd DATE NOT NULL DEFAULT '2020-02-29', y YEAR, yn YEAR NOT NULL);

CREATE TABLE times (
  id INT PRIMARY KEY,
  t TIME, t1 TIME(1), t2 TIME(2), t3 TIME(3), t4 TIME(4), t5 TIME(5), t6 TIME(6), tn TIME(3) NOT NULL
);

-- Beyond what some of Debezium's time modes can write: as NOT NULL columns they stop it there.
CREATE TABLE far_times (id INT PRIMARY KEY, t TIME(3) NOT NULL, dt DATETIME(6) NOT NULL);

CREATE TABLE datetimes (
  id INT PRIMARY KEY,
  t DATETIME, t1 DATETIME(1), t2 DATETIME(2), t3 DATETIME(3), t4 DATETIME(4), t5 DATETIME(5), t6 DATETIME(6)
);

CREATE TABLE timestamps (
  id INT PRIMARY KEY,
  t TIMESTAMP NULL, t1 TIMESTAMP(1) NULL, t2 TIMESTAMP(2) NULL, t3 TIMESTAMP(3) NULL, t4 TIMESTAMP(4) NULL,
  t5 TIMESTAMP(5) NULL, t6 TIMESTAMP(6) NULL
);

CREATE TABLE zero_dates (
  id INT PRIMARY KEY,
  d DATE, dn DATE NOT NULL, dd DATE NOT NULL DEFAULT '2001-02-03',
  t DATETIME, tn DATETIME NOT NULL, td DATETIME NOT NULL DEFAULT '2001-02-03 04:05:06', t6n DATETIME(6) NOT NULL,
  s TIMESTAMP NULL, sn TIMESTAMP NOT NULL, sd TIMESTAMP NOT NULL DEFAULT '2001-02-03 04:05:06', s6n TIMESTAMP(6) NOT NULL,
  dnd DATE DEFAULT '2001-02-03', tnd DATETIME(3) DEFAULT '2001-02-03 04:05:06.789'
);

-- JSON, geometry, vectors --------------------------------------------------------------------------------------------
CREATE TABLE documents (id INT PRIMARY KEY, j JSON, jn JSON NOT NULL);

CREATE TABLE shapes (
  id INT PRIMARY KEY,
  g GEOMETRY, p POINT, l LINESTRING, po POLYGON, mp MULTIPOINT, ml MULTILINESTRING, mpo MULTIPOLYGON, gc GEOMETRYCOLLECTION,
  ps POINT SRID 4326, gs GEOMETRY SRID 3857
);

CREATE TABLE shapes_not_null (id INT PRIMARY KEY, p POINT NOT NULL, g GEOMETRY NOT NULL);

CREATE TABLE vectors (id INT PRIMARY KEY, v VECTOR(4), big VECTOR(2048), plain VECTOR, n VECTOR(2) NOT NULL);

-- Columns that are made, hidden or have defaults ----------------------------------------------------------------------
CREATE TABLE made (
  id INT PRIMARY KEY, a INT, b INT,
  kept INT GENERATED ALWAYS AS (a + b) STORED,
  virt INT GENERATED ALWAYS AS (a * b) VIRTUAL,
  words VARCHAR(30) GENERATED ALWAYS AS (CONCAT('a=', a)) VIRTUAL NOT NULL,
  hidden INT INVISIBLE,
  hidden_default VARCHAR(5) DEFAULT 'hid' INVISIBLE,
  j JSON,
  jv VARCHAR(20) GENERATED ALWAYS AS (JSON_UNQUOTE(JSON_EXTRACT(j, '$.name'))) VIRTUAL,
  KEY functional ((a + 1)), KEY functional2 ((CAST(JSON_EXTRACT(j, '$.n') AS SIGNED)), b)
);

CREATE TABLE invisible_key (a INT, v VARCHAR(10), k INT NOT NULL INVISIBLE PRIMARY KEY AUTO_INCREMENT);

CREATE TABLE defaults (
  id INT PRIMARY KEY COMMENT 'the key',
  t TINYINT NOT NULL DEFAULT -7, su SMALLINT UNSIGNED DEFAULT 65535, m MEDIUMINT DEFAULT 12, i INT DEFAULT 42, iu INT UNSIGNED DEFAULT 4294967295,
  b BIGINT NOT NULL DEFAULT -9223372036854775808, bu BIGINT UNSIGNED DEFAULT 18446744073709551615, zf INT(5) ZEROFILL DEFAULT 7,
  flag BOOL NOT NULL DEFAULT TRUE, b1 BIT(1) DEFAULT b'1', b8 BIT(8) NOT NULL DEFAULT b'10100101', b12 BIT(12) DEFAULT b'101010101010',
  d DECIMAL(10,3) DEFAULT 1.5, dn DECIMAL(20,5) NOT NULL DEFAULT -3.14159, f FLOAT DEFAULT 1.25, do DOUBLE NOT NULL DEFAULT 1e10,
  c CHAR(5) DEFAULT 'ab', v VARCHAR(30) NOT NULL DEFAULT 'it''s "x", é', vn VARCHAR(10) DEFAULT NULL, ve VARCHAR(10) NOT NULL DEFAULT '',
  bi BINARY(4) DEFAULT 'ab', vb VARBINARY(8) NOT NULL DEFAULT 'xyz',
  e ENUM('a','b') NOT NULL DEFAULT 'b', s SET('a','b','c') DEFAULT 'a,c',
  da DATE DEFAULT '2024-02-29', ti TIME NOT NULL DEFAULT '12:34:56', ti_neg TIME DEFAULT '-12:34:56', ti6 TIME(6) DEFAULT '12:34:56.789012',
  dt DATETIME DEFAULT '2024-01-02 03:04:05', dt3 DATETIME(3) NOT NULL DEFAULT '2024-01-02 03:04:05.678', dt6 DATETIME(6) DEFAULT '2024-01-02 03:04:05.678901',
  ts TIMESTAMP NOT NULL DEFAULT '2024-01-02 03:04:05', ts3 TIMESTAMP(3) NULL DEFAULT '2024-01-02 03:04:05.678',
  now_ts TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP, now_null TIMESTAMP NULL DEFAULT CURRENT_TIMESTAMP, now_dt DATETIME(3) DEFAULT CURRENT_TIMESTAMP(3),
  y YEAR DEFAULT 2024, yn YEAR NOT NULL DEFAULT 0, zero_d DATE NOT NULL DEFAULT '0000-00-00', zero_dn DATE DEFAULT '0000-00-00', zero_ts TIMESTAMP NULL DEFAULT '0000-00-00 00:00:00',
  ex VARCHAR(40) DEFAULT (CONCAT('a', 'b')), j JSON DEFAULT (JSON_OBJECT('a', 1)), te TEXT DEFAULT ('text'),
  doc INT DEFAULT 1 COMMENT 'a "comment", it''s é'
) COMMENT = 'defaults of everything';

CREATE TABLE commented (id INT PRIMARY KEY COMMENT 'key comment', a VARCHAR(5) COMMENT 'line\nbreak') COMMENT 'of the table';

-- Keys ---------------------------------------------------------------------------------------------------------------
CREATE TABLE composite (a INT NOT NULL, v VARCHAR(10), b VARCHAR(20) NOT NULL, c DECIMAL(10,2) NOT NULL, PRIMARY KEY (b, a, c));
CREATE TABLE no_key (a INT, b VARCHAR(10), c DATETIME(6));
CREATE TABLE unique_only (a INT NOT NULL, b VARCHAR(10) NOT NULL, c INT, UNIQUE KEY (b));
CREATE TABLE unique_nullable (a INT, b VARCHAR(10), UNIQUE KEY (a));
CREATE TABLE unique_two (a INT NOT NULL, b INT NOT NULL, c INT NOT NULL, UNIQUE KEY z (c), UNIQUE KEY y (a, b));
CREATE TABLE unique_prefix (a VARCHAR(50) NOT NULL, b INT, UNIQUE KEY (a(5)));
CREATE TABLE prefix_key (a VARCHAR(50) NOT NULL, b INT, PRIMARY KEY (a(5)));
CREATE TABLE functional_unique (a INT NOT NULL, b INT NOT NULL, UNIQUE KEY f ((a + b)), UNIQUE KEY g (b, a));
CREATE TABLE bytes_key (k VARBINARY(8) PRIMARY KEY, v INT);
CREATE TABLE decimal_key (k DECIMAL(12,4) PRIMARY KEY, v INT);
CREATE TABLE float_key (k DOUBLE PRIMARY KEY, v INT);
CREATE TABLE two_a (id INT PRIMARY KEY);

CREATE TABLE two_c (id INT PRIMARY KEY, v INT);

CREATE TABLE time_key (d DATE, t TIME(3), dt DATETIME(6), ts TIMESTAMP(2), v INT, PRIMARY KEY (d, t, dt, ts));
CREATE TABLE enum_key (e ENUM('a','b','c'), s SET('x','y'), b BIT(3), b1 BIT(1), y YEAR, v INT, PRIMARY KEY (e, s, b, b1, y));
CREATE TABLE unsigned_key (k BIGINT UNSIGNED PRIMARY KEY, v INT);

-- For the changes ------------------------------------------------------------------------------------------------------
CREATE TABLE customers (id INT PRIMARY KEY, name VARCHAR(40), email VARCHAR(60) NOT NULL, born DATE, balance DECIMAL(12,2) DEFAULT 0.00, secret VARBINARY(16));
CREATE TABLE orders (id BIGINT UNSIGNED PRIMARY KEY, customer INT NOT NULL, note TEXT, at TIMESTAMP(3) NULL);
CREATE TABLE evolving (id INT PRIMARY KEY, a INT, b VARCHAR(10) CHARACTER SET latin1, c DATETIME) CHARACTER SET latin1;
CREATE TABLE renamed_from (id INT PRIMARY KEY, v VARCHAR(10));
CREATE TABLE dropped (id INT PRIMARY KEY, v VARCHAR(10));
CREATE TABLE truncated (id INT PRIMARY KEY, v VARCHAR(10));
CREATE TABLE parted (id INT PRIMARY KEY, v INT) PARTITION BY RANGE (id) (PARTITION p0 VALUES LESS THAN (10), PARTITION p1 VALUES LESS THAN MAXVALUE);
CREATE TABLE parted_swap (id INT PRIMARY KEY, v INT);
CREATE TABLE `odd-name é` (`id-of it` INT PRIMARY KEY, `1st` INT, `a.b` VARCHAR(5), `weird "x"` INT, `größe` INT, `with space` VARCHAR(9), ab INT);
CREATE TABLE debezium_signal (id VARCHAR(64) PRIMARY KEY, type VARCHAR(32) NOT NULL, data VARCHAR(2048) NULL);
CREATE TABLE the_end (id INT PRIMARY KEY, v VARCHAR(10));

-- An outbox, in a database of its own: other configurations take all of this one -------------------------------------
CREATE DATABASE {database}_outbox CHARACTER SET utf8mb4;
CREATE TABLE {database}_outbox.events (id INT PRIMARY KEY AUTO_INCREMENT, kind VARCHAR(20) NOT NULL, who VARCHAR(20), payload TEXT, at DATETIME(6));
-- Bytes, the partition that they go to, and the topics that they name themselves: a text, an ENUM, a SET.
CREATE TABLE {database}_outbox.parcels (id INT PRIMARY KEY AUTO_INCREMENT, shop VARCHAR(20) NOT NULL, ref VARBINARY(16), payload BLOB, place INT,
  lane VARCHAR(40), kind ENUM('by-kind.small', 'by-kind.large'), weights SET('by-set.a', 'by-set.b'))
