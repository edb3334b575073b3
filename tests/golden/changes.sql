-- What happens to the tables of schema.sql. A statement ends with ";" at the end of a line; each commits by itself
-- unless BEGIN stands before it. The session is UTC, utf8mb4.
SET SESSION sql_mode = '';
SET SESSION binlog_rows_query_log_events = ON;

-- Integers and bits: NULL, zero, least, greatest -------------------------------------------------------------------------
INSERT INTO integers (id, n) VALUES (1, 0);
INSERT INTO integers VALUES (2, 0,0,0, 0,0,0, 0,0,0, 0,0,0, 0,0,0, 0,0,0, 0);
INSERT INTO integers VALUES (3, -128,0,1, -32768,0,-32768, -8388608,0,1, -2147483648,0,1, -9223372036854775808,0,1, TRUE,-128,0, -2147483648);
INSERT INTO integers VALUES (4, 127,255,255, 32767,65535,32767, 8388607,16777215,16777215, 2147483647,4294967295,4294967295,
  9223372036854775807,18446744073709551615,18446744073709551615, 1,127,255, 2147483647);
INSERT INTO integers VALUES (5, -1,128,42, -1,32768,42, -1,8388608,42, -1,2147483648,42, -1,9223372036854775808,42, FALSE,2,128, -1);
UPDATE integers SET t = 1, bu = bu - 1, flag = NULL WHERE id IN (4, 5);
DELETE FROM integers WHERE id = 2;
INSERT INTO bits VALUES (1, NULL, NULL, NULL, NULL, NULL, b'0', b'0', NULL);
INSERT INTO bits VALUES (2, b'0', b'0', b'0', b'0', b'0', b'0', b'0', b'0');
INSERT INTO bits VALUES (3, b'1', x'FF', 511, 8589934591, x'FFFFFFFFFFFFFFFF', b'1', b'11111', b'1');
INSERT INTO bits VALUES (4, b'1', x'01', 256, 4294967296, x'8000000000000000', b'1', b'10000', b'0');
INSERT INTO bits VALUES (5, b'0', x'A5', 258, x'0102030405', x'0102030405060708', b'0', b'1', b'1');
UPDATE bits SET b64 = 1, b33 = 1 WHERE id > 3;

-- Decimals and floating point ---------------------------------------------------------------------------------------------
INSERT INTO decimals (id, n) VALUES (1, 0);
INSERT INTO decimals VALUES (2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
INSERT INTO decimals VALUES (3, -99999999999999999999999999999999999.999999999999999999999999999999, -9999999999,
  -9999999999999999999999999999.9999999999, -999.99, 0, -9999999999,
  -99999999999999999999999999999999999999999999999999999999999999999, -0.999999999999999999999999999999, -99999.9999, -999.9,
  -999999999.999999999, -9999999999999999999);
INSERT INTO decimals VALUES (4, 99999999999999999999999999999999999.999999999999999999999999999999, 9999999999,
  9999999999999999999999999999.9999999999, 999.99, 99999.999, 9999999999,
  99999999999999999999999999999999999999999999999999999999999999999, 0.999999999999999999999999999999, 99999.9999, 999.9,
  999999999.999999999, 9999999999999999999);
INSERT INTO decimals VALUES (5, 0.000000000000000000000000000001, 1, 0.0000000001, 0.01, 0.001, 1, 1, 0.000000000000000000000000000001,
  0.0001, 0.1, 0.000000001, 1);
INSERT INTO decimals VALUES (6, -1.5, -1, -1.5, -0.10, 1.500, -128, -129, -0.5, -1.5, -12.5, -1.5, 9223372036854775808);
INSERT INTO decimals VALUES (7, 127, 128, 255, 2.56, 32.768, 127, 256, 0.1, 12.7, 12.8, 1.28, 1270);
UPDATE decimals SET d5 = -d5, d65 = d65 + 1 WHERE id IN (5, 6);
INSERT INTO filled VALUES (1, NULL, NULL, NULL, NULL, NULL, NULL), (2, 0, 0, 0, 0, 0, 0), (3, 42, 42, 42, 1.5, 1.5, 1.5);
INSERT INTO filled VALUES (4, 255, 4294967295, 18446744073709551615, 9999.999, 9999999.99, 1e300);
UPDATE filled SET i = 7, d = 7 WHERE id = 3;
INSERT INTO floats (id, fn, dn) VALUES (1, 0, 0);
INSERT INTO floats VALUES (2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
INSERT INTO floats VALUES (3, -3.4028235e38, -99999.99, -1.17549435e-38, -1.7976931348623157e308, 0, -1.7976931348623157e308, -999999999.999, -2.2250738585072014e-308, 0, -1, -1);
INSERT INTO floats VALUES (4, 3.4028235e38, 99999.99, 1.17549435e-38, 1.7976931348623157e308, 3.4028235e38, 1.7976931348623157e308, 999999999.999, 2.2250738585072014e-308, 1.7976931348623157e308, 1, 1);
INSERT INTO floats VALUES (5, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1);
INSERT INTO floats VALUES (6, 1e-40, 1.005, 1e-45, 5e-324, 1e-40, 5e-324, 0.0005, 1e-310, 4.9e-324, 1e-3, 1e-3);
INSERT INTO floats VALUES (7, -0e0, -0e0, -0e0, -0e0, -0e0, -0e0, -0e0, -0e0, 0, -0e0, -0e0);
INSERT INTO floats VALUES (8, 16777216, 12345.67, 16777217, 16777217, 16777215, 9007199254740993, 123456.789, 9007199254740992, 123456789012345680, 1e7, 1e7);
INSERT INTO floats VALUES (9, 9999999, 1e3, 1e6, 1e16, 1e-4, 1e16, 1e6, 1e22, 1e23, 0.00099999, 0.00099999);
INSERT INTO floats VALUES (10, 1.0e10, 100, 2e10, 123456789, 3.3333333, 1e15, 100, 0.3, 0.1234567890123456789, 33554432, 2e-3);
INSERT INTO floats VALUES (11, 1.4e-45, 0.01, 3.1415927, 3.141592653589793, 8.41, 2e-323, 0.001, 1.0E-5, 2.0E-3, 1.17549421e-38, 2.2250738585072011e-308);
UPDATE floats SET f = f / 3, d = d / 3 WHERE id IN (4, 5, 8);

-- Text ------------------------------------------------------------------------------------------------------------------------
INSERT INTO texts (id, n) VALUES (1, '');
INSERT INTO texts VALUES (2, '', '', '', '', '', '', '', '', '', '', '', '');
INSERT INTO texts VALUES (3, 'abc  ', 'abc  ', '', 'tiny', 'text', 'medium', 'long', 'n', 'né', 'nv€', '', 'binary');
INSERT INTO texts VALUES (4, '😀é€中', '😀é€中 𝄞', '', '"quoted" \\back\\', 'line\nfeed\r\ttab', 'a/b </script>', CONCAT(CHAR(0), CHAR(1), CHAR(8), CHAR(12), CHAR(27), CHAR(31), CHAR(127)), 'ж', '中', '文', '', 'É');
INSERT INTO texts VALUES (5, '  x', ' lead', '', CONVERT(_utf16 x'2028002920290085' USING utf8mb4), CONVERT(x'EFBBBF41' USING utf8mb4), CONVERT(x'EFBFBEEFBFBF' USING utf8mb4), 'e\u0301', 'null', 'a', 'b', '', '{"a":1}');
UPDATE texts SET v = CONCAT(v, '!') WHERE id = 4;
INSERT INTO charsets (id) VALUES (1);
INSERT INTO charsets VALUES (2, '','','', '', '','','', '','','', '','','', '','','', '','','', '','','', '','','', '','','', '','','', '','','', '','','', '','','', '','','', '');
INSERT INTO charsets VALUES (3, '€é ÿ','é  ','€ "x"', 'plain ~', 'é€中','中  ','é😀𝄞', '中文€','中  ','中文', '中文','中文€😀','中文', 'ソ表日本','ソ ','①髙', '日本','日本①','한국어',
  'é😀','é ','é😀', '😀中','é€中','中', 'Привет №','Привет','Привіт', 'Привет','žščř€','žščąė', 'žščř','ğşı','žšąė', 'αβγ','שלום','مرحبا', 'สวัสดี','éüß','žšč', 'é√∞', 'ab', x'FF00', x'FE');
INSERT INTO charsets (id, latin1, latin1_t, cp1251, greek, ascii, latin2) VALUES (4, x'80818D8F909DA0FF', x'00017F80', x'98', x'A4AE', x'7E5C', x'80A0');
INSERT INTO charsets (id, sjis, cp932, ujis, euckr, gbk, big5, gb18030) VALUES (5, x'5C7E835C815F', x'5C7E8160', x'5C7E8FB0A1', x'5C7EA2E6', x'5C7EA1A4A1AA', x'5C7EA145A1C3', x'5C7E8130843090308130');
UPDATE charsets SET gbk = CONCAT(gbk, 'x'), sjis = CONCAT(sjis, '\\') WHERE id = 3;

-- Bytes -----------------------------------------------------------------------------------------------------------------------
INSERT INTO bytes (id, n, bn) VALUES (1, '', '');
INSERT INTO bytes VALUES (2, '', '', '', '', '', '', '', '', '');
INSERT INTO bytes VALUES (3, x'00', x'FF', x'0000', x'01', x'FBFF', x'3F3E', x'FFFE', x'FFFFFFFF', x'000000');
INSERT INTO bytes VALUES (4, 'ab', 'a', 'text é', 'x', x'2020', x'610000', x'00', x'20', x'612000');
INSERT INTO bytes VALUES (5, x'0102030405', x'00', x'FBEFBEFBFF', x'3FBF', x'7F8081', x'DEADBEEF', REPEAT(x'FF', 60), x'0A', x'FFFFFF');
UPDATE bytes SET b = x'20', vb = x'20' WHERE id = 3;
INSERT INTO large VALUES (1, NULL, NULL, NULL, NULL), (2, '', '', '[]', '');
INSERT INTO large VALUES (3, REPEAT('é😀x"\\', 6000), REPEAT(x'00FF10', 24000), JSON_ARRAY(REPEAT('j é', 5000), 1, JSON_OBJECT('k', REPEAT('v', 66000))), REPEAT('é', 66000));
UPDATE large SET mt = 'short' WHERE id = 3;

-- ENUM and SET -----------------------------------------------------------------------------------------------------------------
INSERT INTO choices (id, en, sn) VALUES (1, 'one', '');
INSERT INTO choices VALUES (2, 'a', 'x,y', '', '', 'one', '', 'é', '中');
INSERT INTO choices VALUES (3, 'c', 'it''s', 'a,b,c', 'it''s,"quoted"', 'two', 'one,two', 'ü', '文');
INSERT INTO choices VALUES (4, 'b', 'back\\slash', 'b', 'back\\slash', 'two', 'two', 'é', '中');
INSERT INTO choices VALUES (5, 'b', '"quoted"', 'c,a', 'naïve €', 'two', 'two', 'é', '中');
INSERT INTO choices VALUES (6, 0, '', 0, '', 'not there', 'nor here', 0, 0);
INSERT INTO choices VALUES (7, 'a', ' spaced', 5, 7, 1, 3, 1, 1), (8, 'a', 'naïve €', 5, 7, 1, 3, 1, 1);
UPDATE choices SET e = 'c', s = 'a' WHERE id = 2;
INSERT INTO wide_set VALUES (1, NULL), (2, ''), (3, 'v64'), (4, 'v01,v33,v64'), (5, 18446744073709551615);

-- Times ---------------------------------------------------------------------------------------------------------------------------
INSERT INTO dates (id, dn, yn) VALUES (1, '2024-02-29', 2024);
INSERT INTO dates VALUES (2, '1000-01-01', '1000-01-01', '1000-01-01', 1901, 1901);
INSERT INTO dates VALUES (3, '9999-12-31', '9999-12-31', '9999-12-31', 2155, 2155);
INSERT INTO dates VALUES (4, '1969-12-31', '1970-01-01', '1582-10-04', 0, 0);
INSERT INTO dates VALUES (5, '0001-01-01', '0099-12-31', '1582-10-15', 1970, 2000);
UPDATE dates SET d = '2000-01-01', y = 1999 WHERE id = 5;
INSERT INTO times (id, tn) VALUES (1, 0);
INSERT INTO times VALUES (2, '00:00:00', '00:00:00', '00:00:00', '00:00:00', '00:00:00', '00:00:00', '00:00:00', '00:00:00');
INSERT INTO times VALUES (3, '-838:59:59', '-838:59:58.9', '-838:59:58.99', '-838:59:58.999', '-838:59:58.9999', '-838:59:58.99999', '-838:59:58.999999', '00:00:00.123');
INSERT INTO times VALUES (4, '838:59:59', '838:59:58.9', '838:59:58.99', '838:59:58.999', '838:59:58.9999', '838:59:58.99999', '838:59:58.999999', '23:00:00');
INSERT INTO times VALUES (5, '-00:00:01', '-00:00:00.1', '-00:00:00.01', '-00:00:00.001', '-00:00:00.0001', '-00:00:00.00001', '-00:00:00.000001', '00:00:00.5');
INSERT INTO times VALUES (6, '23:59:59', '23:59:59.9', '23:59:59.99', '23:59:59.999', '23:59:59.9999', '23:59:59.99999', '23:59:59.999999', '23:59:59.999');
INSERT INTO times VALUES (7, '12:34:56', '12:34:56.7', '12:34:56.78', '12:34:56.789', '12:34:56.7890', '12:34:56.78901', '12:34:56.789012', '12:00:00');
INSERT INTO times VALUES (8, '24:00:00', '-24:00:00.5', '100:00:00.05', '-99:59:59.999', '48:00:00', '-01:02:03.04', '-12:34:56.789012', '01:00:00');
UPDATE times SET t6 = '00:00:00.000001' WHERE id = 8;
INSERT INTO far_times VALUES (1, '838:59:59', '9999-12-31'), (2, '-00:00:00.001', '0001-01-01'), (3, '24:00:00', '2262-04-11 23:47:17');
INSERT INTO datetimes (id) VALUES (1);
INSERT INTO datetimes VALUES (2, '1970-01-01', '1970-01-01', '1970-01-01', '1970-01-01', '1970-01-01', '1970-01-01', '1970-01-01');
INSERT INTO datetimes VALUES (3, '1000-01-01', '1000-01-01 00:00:00.1', '1000-01-01 00:00:00.01', '1000-01-01 00:00:00.001', '1000-01-01 00:00:00.0001', '1000-01-01 00:00:00.00001', '1000-01-01 00:00:00.000001');
INSERT INTO datetimes VALUES (4, '9999-12-31 23:59:59', '9999-12-31 23:59:59.4', '9999-12-31 23:59:59.49', '9999-12-31 23:59:59.499', '9999-12-31 23:59:59.4999', '9999-12-31 23:59:59.49999', '9999-12-31 23:59:59.499999');
INSERT INTO datetimes VALUES (5, '1969-12-31 23:59:59', '1969-12-31 23:59:59.9', '1969-12-31 23:59:59.99', '1969-12-31 23:59:59.999', '1969-12-31 23:59:59.9999', '1969-12-31 23:59:59.99999', '1969-12-31 23:59:59.999999');
INSERT INTO datetimes VALUES (6, '2024-02-29 12:34:56', '2024-02-29 12:34:56.7', '2024-02-29 12:34:56.78', '2024-02-29 12:34:56.789', '2024-02-29 12:34:56.7890', '2024-02-29 12:34:56.78901', '2024-02-29 12:34:56.789012');
INSERT INTO datetimes VALUES (7, '1582-10-10', '0001-01-01 00:00:00.1', '0099-12-31 23:59:59.99', '1883-11-18 12:00:00', '1941-05-08 01:02:03.4', '2262-04-11 23:47:16', '2024-03-31 02:30:00.5');
UPDATE datetimes SET t3 = '2024-01-01 00:00:00.5', t6 = '2024-01-01' WHERE id = 6;
INSERT INTO timestamps (id) VALUES (1);
INSERT INTO timestamps VALUES (2, '1970-01-01 00:00:01', '1970-01-01 00:00:01', '1970-01-01 00:00:01', '1970-01-01 00:00:01', '1970-01-01 00:00:01', '1970-01-01 00:00:01', '1970-01-01 00:00:01');
INSERT INTO timestamps VALUES (3, '2038-01-19 03:14:07', '2038-01-19 03:14:07.4', '2038-01-19 03:14:07.49', '2038-01-19 03:14:07.499', '2038-01-19 03:14:07.4999', '2038-01-19 03:14:07.49999', '2038-01-19 03:14:07.499999');
INSERT INTO timestamps VALUES (4, '2024-02-29 12:34:56', '2024-02-29 12:34:56.7', '2024-02-29 12:34:56.78', '2024-02-29 12:34:56.789', '2024-02-29 12:34:56.7890', '2024-02-29 12:34:56.78901', '2024-02-29 12:34:56.789012');
SET time_zone = '+05:30';
INSERT INTO timestamps VALUES (5, '2024-02-29 12:00:00', '2024-02-29 12:00:00', '2024-02-29 12:00:00', '2024-02-29 12:00:00.1', '2024-02-29 12:00:00.01', '2024-02-29 12:00:00.5', '2024-02-29 12:00:00.500000');
UPDATE timestamps SET t6 = '2024-07-01 00:00:00.000001' WHERE id = 4;
SET time_zone = '+00:00';
INSERT INTO zero_dates VALUES (1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
INSERT INTO zero_dates VALUES (2, '2024-00-01', '2024-01-00', '2024-00-00', '2024-00-01 01:02:03', '2024-01-00 01:02:03', '0000-01-01', '2024-00-00 01:02:03.5', NULL, '2000-01-01', '2000-01-01', '2000-01-01', '0000-01-01', '2024-00-01');
INSERT INTO zero_dates VALUES (3, NULL, '2024-01-01', '2024-01-01', NULL, '2024-01-01', '2024-01-01', '2024-01-01', NULL, '2024-01-01', '2024-01-01', '2024-01-01', NULL, NULL);
-- A day that is not in the calendar ('2024-02-31', ALLOW_INVALID_DATES) stops Debezium's connector: not recorded.
UPDATE zero_dates SET d = 0, dn = '2024-05-05' WHERE id = 3;

-- JSON, geometry, vectors ---------------------------------------------------------------------------------------------------------
INSERT INTO documents VALUES (1, NULL, 'null'), (2, 'null', '{}'), (3, '[]', '""'), (4, 'true', 'false');
INSERT INTO documents VALUES (5, '{"b": 1, "aa": [1, 2, {"x": null}], "": "empty key", "é": "€", "c": {"d": {"e": [[], {}]}}}', '[[[[1]]]]');
INSERT INTO documents VALUES (6, '[0, -1, 127, 128, 32767, 32768, -32769, 2147483647, 2147483648, -2147483649, 9223372036854775807, -9223372036854775808, 18446744073709551615]', '18446744073709551616');
INSERT INTO documents VALUES (7, '[0.1, 1.0, -0.0, 1e10, 1e15, 1e16, 1e22, 1e-5, 1.5e300, 5e-324, 0.001, 123456789.125, 1e3, 12345678901234567890.5]', '1.0');
INSERT INTO documents VALUES (8, '["\\u0001\\b\\n\\r\\t\\f\\"\\\\\\/", "\\u007f\\u0080\\u2028", "😀 é 中", "\\u0000 <>&''"]', '"a\\"b"');
INSERT INTO documents VALUES (9, JSON_ARRAY(CAST(1.50 AS DECIMAL(5,2)), CAST(-0.001 AS DECIMAL(10,5)), CAST(12345678901234567890.123456789 AS DECIMAL(40,10)), CAST(0 AS DECIMAL(5,2)), CAST(7 AS DECIMAL(5,0))), CAST(3.14 AS JSON));
INSERT INTO documents VALUES (10, JSON_ARRAY(CAST('2024-02-29' AS DATE), CAST('12:34:56.5' AS TIME(1)), CAST('-838:59:59' AS TIME), CAST('2024-02-29 12:34:56.789012' AS DATETIME(6)), CAST('1000-01-01' AS DATETIME), TIMESTAMP'2024-02-29 12:34:56'), CAST(CAST('2024-02-29' AS DATE) AS JSON));
INSERT INTO documents VALUES (11, JSON_ARRAY(x'00FF10', b'1010', CAST('bin' AS BINARY), CAST('2155' AS YEAR)), CAST(x'DEADBEEF' AS JSON));
INSERT INTO documents VALUES (12, JSON_OBJECT('t', TRUE, 'f', FALSE, 'n', NULL, 'i', 1, 'u', CAST(18446744073709551615 AS UNSIGNED), 'g', ST_AsGeoJSON(POINT(1, 2))), JSON_ARRAY(0e0, -0e0, 1e0, 0.1e0, 16777217e0));
INSERT INTO documents VALUES (13, JSON_OBJECT('key with "quotes"', 1, 'k\\', 2, '日本', 3), '{"z":1,"a":2,"bb":3,"aaa":4}');
UPDATE documents SET j = JSON_SET(j, '$.b', 2, '$.new', JSON_ARRAY(1.50, 'x')) WHERE id = 5;
UPDATE documents SET j = JSON_REMOVE(j, '$[0]') WHERE id = 6;
INSERT INTO shapes (id) VALUES (1);
INSERT INTO shapes VALUES (2, POINT(1, 2), POINT(1.5, -2.25), ST_GeomFromText('LINESTRING(0 0, 1 1, 2.5 3)'), ST_GeomFromText('POLYGON((0 0, 4 0, 4 4, 0 4, 0 0), (1 1, 2 1, 2 2, 1 1))'),
  ST_GeomFromText('MULTIPOINT((0 0), (1 2))'), ST_GeomFromText('MULTILINESTRING((0 0, 1 1), (2 2, 3 3))'), ST_GeomFromText('MULTIPOLYGON(((0 0, 1 0, 1 1, 0 0)), ((5 5, 6 5, 6 6, 5 5)))'),
  ST_GeomFromText('GEOMETRYCOLLECTION(POINT(1 1), LINESTRING(0 0, 1 1))'), ST_GeomFromText('POINT(52.5 13.4)', 4326), ST_GeomFromText('LINESTRING(0 0, 10 10)', 3857));
INSERT INTO shapes VALUES (3, ST_GeomFromText('GEOMETRYCOLLECTION EMPTY'), ST_GeomFromText('POINT(48.85 2.35)', 4326), ST_GeomFromText('LINESTRING(0 0, 1 1)', 4326), ST_GeomFromText('POLYGON((0 0, 0 1, 1 1, 0 0))', 4326),
  NULL, NULL, NULL, ST_GeomFromText('GEOMETRYCOLLECTION EMPTY'), ST_GeomFromText('POINT(-90 180)', 4326), ST_GeomFromText('POINT(1 2)', 3857));
INSERT INTO shapes (id, g, p) VALUES (4, ST_GeomFromText('POLYGON((0 0, 1 0, 1 1, 0 0))'), POINT(-0e0, 1e300)), (5, ST_GeomFromText('MULTIPOINT((1 1))', 4326), POINT(0.1, 1e-300));
UPDATE shapes SET p = POINT(9, 9) WHERE id = 2;
INSERT INTO shapes_not_null VALUES (1, POINT(0, 0), POINT(1, 1)), (2, ST_GeomFromText('POINT(1 2)', 4326), ST_GeomFromText('LINESTRING(0 0, 1 2)'));
INSERT INTO vectors VALUES (1, NULL, NULL, NULL, STRING_TO_VECTOR('[0,0]'));
INSERT INTO vectors VALUES (2, STRING_TO_VECTOR('[1,2,3,4]'), STRING_TO_VECTOR('[0.1]'), STRING_TO_VECTOR('[1.5,-0.25]'), STRING_TO_VECTOR('[1,2]'));
INSERT INTO vectors VALUES (3, STRING_TO_VECTOR('[-1.5,0.1,3.4028234e38,2e-38]'), STRING_TO_VECTOR('[1e7,16777216,0.001,1e-5,-0.0]'), STRING_TO_VECTOR('[1]'), STRING_TO_VECTOR('[0.3333333,100]'));
UPDATE vectors SET v = STRING_TO_VECTOR('[9]') WHERE id = 2;

-- Made, hidden, defaults ---------------------------------------------------------------------------------------------------------------
INSERT INTO made (id, a, b, j) VALUES (1, 2, 3, '{"name": "n", "n": 5}');
INSERT INTO made (id, a, b, hidden, hidden_default) VALUES (2, 0, NULL, 7, NULL);
UPDATE made SET a = 10, hidden = 1 WHERE id = 1;
INSERT INTO invisible_key (a, v) VALUES (1, 'one'), (2, 'two');
UPDATE invisible_key SET v = 'TWO' WHERE a = 2;
DELETE FROM invisible_key WHERE a = 1;
SET timestamp = 1719835200.123456;
INSERT INTO defaults (id) VALUES (1);
INSERT INTO defaults (id, su, m, i, iu, bu, zf, b1, d, f, c, vn, bi, s, da, ti6, dt, dt6, ts3, now_dt, y, zero_dn, zero_ts, ex, j, te, doc, now_ts)
  VALUES (2, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, '2024-01-01');
SET timestamp = DEFAULT;
INSERT INTO commented VALUES (1, 'a'), (2, NULL);

-- Keys --------------------------------------------------------------------------------------------------------------------------------------
INSERT INTO composite VALUES (1, 'v', 'b', 1.50), (2, NULL, '', -0.01);
UPDATE composite SET v = 'w' WHERE a = 1;
UPDATE composite SET c = 2 WHERE a = 1;
UPDATE composite SET a = 3, b = 'é' WHERE a = 2;
DELETE FROM composite WHERE a = 3;
INSERT INTO no_key VALUES (1, 'a', '2024-01-01 00:00:00.000001'), (1, 'a', NULL), (NULL, NULL, NULL);
UPDATE no_key SET b = 'b' WHERE a = 1;
DELETE FROM no_key WHERE a IS NULL;
INSERT INTO unique_only VALUES (1, 'a', 1), (2, 'b', NULL);
UPDATE unique_only SET c = 5 WHERE a = 1;
UPDATE unique_only SET b = 'z' WHERE a = 2;
DELETE FROM unique_only WHERE a = 1;
INSERT INTO unique_nullable VALUES (1, 'a'), (NULL, 'b'), (NULL, 'c');
DELETE FROM unique_nullable WHERE b = 'b';
INSERT INTO unique_two VALUES (1, 2, 3);
UPDATE unique_two SET c = 4;
UPDATE unique_two SET a = 9;
INSERT INTO unique_prefix VALUES ('abcdefgh', 1);
INSERT INTO prefix_key VALUES ('abcdefgh', 1), ('xyz', 2);
UPDATE prefix_key SET a = 'abcdeXXX' WHERE b = 1;
INSERT INTO functional_unique VALUES (1, 2);
UPDATE functional_unique SET a = 5;
INSERT INTO bytes_key VALUES (x'00FF', 1), ('', 2);
UPDATE bytes_key SET k = x'01' WHERE v = 2;
INSERT INTO decimal_key VALUES (1.5, 1), (-99999999.9999, 2);
DELETE FROM decimal_key WHERE v = 1;
INSERT INTO float_key VALUES (0.1, 1), (1e300, 2);
DELETE FROM float_key WHERE v = 2;
INSERT INTO time_key VALUES ('2024-01-01', '01:02:03.004', '1969-12-31 23:59:59.999999', '2024-01-01 00:00:00.5', 1), ('1000-01-01', '23:59:59.999', '2200-12-31', '2038-01-19 03:14:07', 2);
UPDATE time_key SET v = 3 WHERE v = 1;
INSERT INTO enum_key VALUES ('a', 'x,y', 5, 1, 2024, 1), ('c', '', 0, 0, 0, 2);
UPDATE enum_key SET e = 'b' WHERE v = 2;
INSERT INTO unsigned_key VALUES (0, 1), (18446744073709551615, 2), (9223372036854775807, 3);

-- Changes of rows -----------------------------------------------------------------------------------------------------------------------------
INSERT INTO customers VALUES (1, 'Ann Müller', 'ann@example.com', '1990-05-17', 10.50, 'secret'), (2, 'Bob', 'bob@example.com', NULL, NULL, NULL), (3, '', '', NULL, 0, '');
UPDATE customers SET balance = balance + 1;
UPDATE customers SET name = name WHERE id = 1;
UPDATE customers SET id = 20 WHERE id = 2;
UPDATE customers SET id = id + 100 ORDER BY id DESC;
DELETE FROM customers WHERE id = 103;
REPLACE INTO customers (id, name, email) VALUES (101, 'Ann replaced', 'ann@example.com'), (104, 'Dora', 'dora@example.com');
INSERT INTO customers (id, email) VALUES (101, 'x'), (105, 'e') ON DUPLICATE KEY UPDATE email = CONCAT(VALUES(email), '-dup');
INSERT IGNORE INTO customers (id, email) VALUES (101, 'ignored');
UPDATE customers SET name = '12345678901234567890', email = '€uro😀xyz' WHERE id = 104;
BEGIN;
INSERT INTO orders VALUES (1, 101, 'first', '2024-01-01 00:00:00.123');
INSERT INTO customers (id, name, email) VALUES (200, 'in a transaction', 't@example.com');
INSERT INTO orders VALUES (18446744073709551615, 200, NULL, NULL), (2, 200, '', '1970-01-01 00:00:01');
UPDATE customers SET name = 'changed inside' WHERE id = 200;
DELETE FROM orders WHERE id = 1;
COMMIT;
BEGIN;
INSERT INTO orders VALUES (77, 1, 'rolled back', NULL);
ROLLBACK;
BEGIN;
INSERT INTO orders VALUES (3, 101, 'kept', NULL);
SAVEPOINT one;
INSERT INTO orders VALUES (4, 101, 'undone', NULL);
ROLLBACK TO SAVEPOINT one;
INSERT INTO orders VALUES (5, 101, 'kept too', NULL);
COMMIT;
INSERT INTO orders SELECT id + 1000, id, name, NULL FROM customers;
UPDATE customers, orders SET customers.name = 'joined', orders.note = 'joined' WHERE orders.customer = customers.id AND customers.id = 200;
DELETE customers, orders FROM customers JOIN orders ON orders.customer = customers.id WHERE customers.id = 200;

-- TRUNCATE --------------------------------------------------------------------------------------------------------------------------------------
INSERT INTO truncated VALUES (1, 'a'), (2, 'b');
TRUNCATE TABLE truncated;
INSERT INTO truncated VALUES (3, 'after');

-- Schema changes: each followed by rows -------------------------------------------------------------------------------------------------------------
INSERT INTO evolving VALUES (1, 1, 'é', '2024-01-01');
ALTER TABLE evolving ADD COLUMN d DECIMAL(6,2) NOT NULL DEFAULT 1.25;
INSERT INTO evolving VALUES (2, 2, 'two', NULL, 2.50);
ALTER TABLE evolving ADD COLUMN first_one BIGINT UNSIGNED FIRST, ADD COLUMN after_a VARCHAR(5) AFTER a;
INSERT INTO evolving VALUES (5, 3, 3, 'aft', 'three', NULL, 0);
ALTER TABLE evolving RENAME COLUMN a TO renamed;
UPDATE evolving SET renamed = 33 WHERE id = 3;
ALTER TABLE evolving MODIFY renamed BIGINT NOT NULL, CHANGE COLUMN c changed DATETIME(6) NULL;
INSERT INTO evolving VALUES (NULL, 4, 9223372036854775807, NULL, NULL, '2024-01-01 00:00:00.000001', 9999.99);
ALTER TABLE evolving MODIFY d DECIMAL(6,2) FIRST;
UPDATE evolving SET b = 'x' WHERE id = 4;
ALTER TABLE evolving CONVERT TO CHARACTER SET utf8mb4;
INSERT INTO evolving (id, renamed, b) VALUES (5, 5, '😀é');
ALTER TABLE evolving DROP COLUMN first_one, DROP COLUMN after_a;
DELETE FROM evolving WHERE id = 1;
ALTER TABLE evolving DROP PRIMARY KEY, ADD PRIMARY KEY (renamed, id);
UPDATE evolving SET b = 'key2' WHERE id = 5;
ALTER TABLE evolving ALTER COLUMN b SET DEFAULT 'dflt', COMMENT 'changed';
INSERT INTO evolving (id, renamed, d) VALUES (6, 6, 6);
ALTER TABLE evolving ADD INDEX extra (b);
INSERT INTO evolving (id, renamed) VALUES (7, 7);
INSERT INTO renamed_from VALUES (1, 'before');
RENAME TABLE renamed_from TO renamed_to;
INSERT INTO renamed_to VALUES (2, 'after');
ALTER TABLE renamed_to RENAME TO renamed_again;
RENAME TABLE two_a TO two_b, two_c TO two_d;
INSERT INTO two_d VALUES (1, 1);
INSERT INTO renamed_again VALUES (3, 'again');
INSERT INTO dropped VALUES (1, 'old');
DROP TABLE dropped;
CREATE TABLE dropped (other VARCHAR(20) PRIMARY KEY, n INT NOT NULL DEFAULT 3);
INSERT INTO dropped VALUES ('new', 4);
CREATE TABLE made_later (id SERIAL, flag BOOLEAN, b BOOL DEFAULT TRUE, r REAL, f FLOAT(24), nc NCHAR(3), nv NVARCHAR(5), i INTEGER, c CHARACTER(4), cv CHARACTER VARYING(6), de DEC(5,1), fx FIXED(6,2), dp DOUBLE PRECISION, t TINYINT(1), lv LONG VARCHAR, i1 INT1, i8 INT8, PRIMARY KEY (id));
INSERT INTO made_later VALUES (1, TRUE, FALSE, 1.5, 0.1, 'abc', 'é', 1, 'c', 'cv', 1.5, 2.25, 0.1, 1, 'long', 127, 8), (2, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
CREATE TABLE like_another LIKE customers;
INSERT INTO like_another (id, email) VALUES (1, 'like');
CREATE TABLE by_select (PRIMARY KEY (id)) AS SELECT id, name, balance FROM customers;
INSERT INTO by_select VALUES (999, 'later', 1);
INSERT INTO parted VALUES (1, 1), (50, 50);
INSERT INTO parted_swap VALUES (5, 5);
ALTER TABLE parted EXCHANGE PARTITION p0 WITH TABLE parted_swap;
UPDATE parted SET v = v + 1;
UPDATE parted_swap SET v = v + 1;
ALTER TABLE parted TRUNCATE PARTITION p0;
ALTER TABLE parted DROP PARTITION p0;
UPDATE parted SET v = v + 1;
CREATE VIEW a_view AS SELECT id FROM customers;
CREATE INDEX by_name ON customers (name);
DROP INDEX by_name ON customers;
CREATE UNIQUE INDEX by_id ON customers (id);
DROP INDEX by_id ON customers;
CREATE TABLE keyed_later (a INT NOT NULL, b INT, place POINT NOT NULL SRID 0, v VARCHAR(20));
CREATE UNIQUE INDEX by_sum ON keyed_later ((a + b));
CREATE UNIQUE INDEX by_b ON keyed_later (b);
CREATE UNIQUE INDEX by_a ON keyed_later (a);
CREATE UNIQUE INDEX by_ab ON keyed_later (a, b);
CREATE FULLTEXT INDEX by_words ON keyed_later (v);
CREATE SPATIAL INDEX by_place ON keyed_later (place);
CREATE TABLE keyed_elsewhere (a INT NOT NULL);
CREATE UNIQUE INDEX by_a ON keyed_elsewhere (a);
CREATE TABLE IF NOT EXISTS customers (id INT PRIMARY KEY, other INT);
CREATE TABLE IF NOT EXISTS made_if_absent (id INT PRIMARY KEY);
CREATE TABLE IF NOT EXISTS like_another LIKE customers;
CREATE TABLE in_memory (id INT PRIMARY KEY) ENGINE=MEMORY;
CREATE TABLE IF NOT EXISTS in_memory (id INT PRIMARY KEY) ENGINE=MEMORY;
/* of an app */ CREATE TABLE with_comments (id INT PRIMARY KEY) /* behind */;
/* of an app */ ALTER TABLE with_comments /* within */ ADD v INT -- behind
;
/* of an app */ CREATE INDEX by_v ON with_comments (v) /* behind */;
CREATE DEFINER = `nobody`@`localhost` EVENT an_event ON SCHEDULE EVERY 1 DAY DISABLE DO DELETE FROM customers WHERE FALSE;
ALTER EVENT an_event COMMENT 'x';
DROP EVENT an_event;
ALTER DATABASE {database} CHARACTER SET utf8mb3;
CREATE TABLE in_utf8mb3 (id INT PRIMARY KEY, v VARCHAR(10));
INSERT INTO in_utf8mb3 VALUES (1, 'é€');
ALTER DATABASE {database} CHARACTER SET utf8mb4;
INSERT INTO `odd-name é` VALUES (1, 2, 'v', 3, 4, 'w', 5);
UPDATE `odd-name é` SET `id-of it` = 2;
-- Events of an outbox, their payloads all that JSON may be ------------------------------------------------------------
INSERT INTO {database}_outbox.events (kind, who, payload, at) VALUES ('json', 'k0', '{}', '2024-01-02 03:04:05.678901');
INSERT INTO {database}_outbox.events (kind, who, payload, at) VALUES ('json', 'k1', '{"i": 1, "s": "x", "t": true, "n": null, "d": 1.5, "l": 3000000000, "o": {"p": {"q": null}}, "e": [], "a": [1, 2], "z": "last"}', '2024-01-02 03:04:05.678901');
INSERT INTO {database}_outbox.events (kind, who, payload, at) VALUES ('json', 'k2', '{"k.e y": 1, "é": "😀 \\u0001 \\u001f \\" \\\\ \\/ \\b\\f\\n\\r\\t é", "k\\"": {"1st": "x"}}', '2024-01-02 03:04:05.678901');
INSERT INTO {database}_outbox.events (kind, who, payload, at) VALUES ('json', 'k0', '{"a": 1.0, "b": 1e10, "c": 0.001, "d": 1e-5, "e": -0.0, "f": -0, "g": 0.1, "h": 123456789012345680.0, "i": 5e-324}', '2024-01-02 03:04:05.678901');
INSERT INTO {database}_outbox.events (kind, who, payload, at) VALUES ('json', 'k1', '{"a": [null, 1], "b": ["x", null, "y"], "c": [true, false], "d": [1.5], "e": [3000000000, 4000000000]}', '2024-01-02 03:04:05.678901');
INSERT INTO {database}_outbox.events (kind, who, payload, at) VALUES ('json', 'k2', '{"a": [{"x": 1, "y": null}, {"x": 2, "y": "z"}], "b": [{"x": 1}, null, {"x": 2}], "c": [{"x": {}}, {}]}', '2024-01-02 03:04:05.678901');
INSERT INTO {database}_outbox.events (kind, who, payload, at) VALUES ('json', 'k0', '{"a": [[1, 2], [3]], "b": [[{"x": 1}]], "c": [{"x": [1]}, {"x": []}]}', '2024-01-02 03:04:05.678901');
INSERT INTO {database}_outbox.events (kind, who, payload, at) VALUES ('json', 'k1', '{"a": {"b": [{"c": {"d": [{"e": 1}]}}]}}', '2024-01-02 03:04:05.678901');
INSERT INTO {database}_outbox.events (kind, who, payload, at) VALUES ('json', 'k2', '{"a": 1, "a": "two", "b": 2}', '2024-01-02 03:04:05.678901');
INSERT INTO {database}_outbox.events (kind, who, payload, at) VALUES ('json', 'k0', '{"a": 1} and more', '2024-01-02 03:04:05.678901');
INSERT INTO {database}_outbox.events (kind, who, payload, at) VALUES ('json', 'k1', '{"a": 9223372036854775807, "b": -9223372036854775808, "c": 2147483648, "d": -2147483648}', '2024-01-02 03:04:05.678901');
INSERT INTO {database}_outbox.events (kind, who, payload, at) VALUES ('json', 'k2', 'plain', '2024-01-02 03:04:05.678901');
INSERT INTO {database}_outbox.events (kind, who, payload, at) VALUES ('json', 'k0', ' {"a": 1}', '2024-01-02 03:04:05.678901');
INSERT INTO {database}_outbox.events (kind, who, payload, at) VALUES ('json', 'k1', '{"a": ', '2024-01-02 03:04:05.678901');
INSERT INTO {database}_outbox.events (kind, who, payload, at) VALUES ('json', 'k2', '{"a": 1,}', '2024-01-02 03:04:05.678901');
INSERT INTO {database}_outbox.events (kind, who, payload, at) VALUES ('json', 'k0', '{''a'': 1}', '2024-01-02 03:04:05.678901');
INSERT INTO {database}_outbox.events (kind, who, payload, at) VALUES ('json', 'k1', '{"a": 01}', '2024-01-02 03:04:05.678901');
INSERT INTO {database}_outbox.events (kind, who, payload, at) VALUES ('json', 'k2', '{"a": NaN}', '2024-01-02 03:04:05.678901');
INSERT INTO {database}_outbox.events (kind, who, payload, at) VALUES ('json', 'k0', '{"": 1}', '2024-01-02 03:04:05.678901');
INSERT INTO {database}_outbox.events (kind, who, payload, at) VALUES ('json', 'k1', '{"a": [1, 2.5]}', '2024-01-02 03:04:05.678901');
INSERT INTO {database}_outbox.events (kind, who, payload, at) VALUES ('json', 'k2', '{"a": [1, 3000000000]}', '2024-01-02 03:04:05.678901');
INSERT INTO {database}_outbox.events (kind, who, payload, at) VALUES ('json', 'k0', '{"a": [1, "x"]}', '2024-01-02 03:04:05.678901');
INSERT INTO {database}_outbox.events (kind, who, payload, at) VALUES ('json', 'k1', '{"a": [null]}', '2024-01-02 03:04:05.678901');
INSERT INTO {database}_outbox.events (kind, who, payload, at) VALUES ('json', 'k2', '{"a": [[], [1]]}', '2024-01-02 03:04:05.678901');
INSERT INTO {database}_outbox.events (kind, who, payload, at) VALUES ('json', 'k0', '{"a": [{"x": 1}, 5]}', '2024-01-02 03:04:05.678901');
INSERT INTO {database}_outbox.events (kind, who, payload, at) VALUES ('json', 'k1', '"text"', '2024-01-02 03:04:05.678901');
INSERT INTO {database}_outbox.events (kind, who, payload, at) VALUES ('json', NULL, '', NULL);
INSERT INTO {database}_outbox.events (kind, who, payload, at) VALUES ('json', 'k', '  ', NULL);
INSERT INTO {database}_outbox.events (kind, who, payload, at) VALUES ('json', 'k', NULL, NULL);
INSERT INTO {database}_outbox.events (kind, who, payload, at) VALUES ('json', 'k', '{"tab": "	"}', NULL);
-- Bytes that go to topics and partitions in their rows ------------------------------------------------------------------
INSERT INTO {database}_outbox.parcels (shop, ref, payload, place, lane, kind, weights) VALUES ('north', x'00FF80', x'0000000001FE', 2, 'by-lane.red', 'by-kind.small', 'by-set.a'), ('south', 'text', '{"a":1}', 0, 'by-lane.blue', 'by-kind.large', 'by-set.b');
INSERT INTO {database}_outbox.parcels (shop, ref, payload, place, lane, kind, weights) VALUES ('north', x'00FF80', x'C328', NULL, NULL, NULL, NULL), ('north', NULL, '', 1, '', 'by-kind.small', ''), ('south', '', NULL, NULL, ' \t', 'by-kind.large', 'by-set.b');
INSERT INTO {database}_outbox.parcels (shop, ref, payload, place, lane, kind, weights) VALUES ('south', NULL, NULL, NULL, 'by-lane.red', 'by-kind.small', 'by-set.a'), ('north', '1', 'two words', NULL, 'by-lane.red', 'by-kind.large', 'by-set.a'), ('north', '2', 'é', NULL, 'by-lane.blue', NULL, 'by-set.b'), ('north', '3', REPEAT('x', 4000), 2, 'by-lane.blue', NULL, 'by-set.b');
UPDATE {database}_outbox.parcels SET place = 1 WHERE id = 1;
UPDATE {database}_outbox.parcels SET lane = 'by-lane.green', kind = 'by-kind.large', weights = 'by-set.b' WHERE id = 1;
UPDATE {database}_outbox.parcels SET lane = NULL, kind = NULL, weights = NULL WHERE id = 2;
UPDATE {database}_outbox.parcels SET id = 100, lane = 'by-lane.moved', kind = 'by-kind.large', weights = 'by-set.b' WHERE id = 6;
DELETE FROM {database}_outbox.parcels WHERE id IN (1, 2, 4);
INSERT INTO the_end VALUES (1, 'end')
