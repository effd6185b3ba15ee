-- Changes whose envelopes Debezium and tidelog's connector are compared by: what a snapshot finds, then what follows it.
CREATE TYPE mood AS ENUM ('calm', 'cross');
CREATE TABLE typed (
    id int PRIMARY KEY, small smallint, large bigint, single real, twice double precision, exact numeric(10, 2),
    loose numeric, yes boolean, words text, short varchar(20), fixed char(5), raw bytea, day date, at time,
    at_zone timetz, moment timestamp, moment3 timestamp(3), instant timestamptz, uid uuid, doc json, docb jsonb,
    span interval, numbers int[], names text[], feeling mood, address inet
);
CREATE TABLE plain (id serial PRIMARY KEY, name text NOT NULL DEFAULT 'none', long text);
CREATE TABLE full_rows (a int, b text);
ALTER TABLE full_rows REPLICA IDENTITY FULL;
CREATE TABLE two_keys (a int, b text, c text, PRIMARY KEY (a, b));
INSERT INTO typed VALUES (
    1, -2, 9007199254740993, 1.5, 0.1, 12345678.90, 3.14159, true, 'words', 'short', 'abc', '\x00ff10', '2024-02-29',
    '13:14:15.123456', '13:14:15.5+02', '2024-02-29 13:14:15.123456', '2024-02-29 13:14:15.123',
    '2024-02-29 13:14:15.123456+00', 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11', '{"a": 1}', '{"b": [1, 2]}', '1 day 02:03:04',
    '{1,2,NULL}', '{"x","y z"}', 'calm', '10.0.0.1'
);
INSERT INTO typed (id) VALUES (2);
INSERT INTO plain (name) VALUES ('first'), ('second');
INSERT INTO full_rows VALUES (1, 'one');
INSERT INTO two_keys VALUES (1, 'x', 'there');
-- changes
INSERT INTO plain (name, long) VALUES ('third', (SELECT string_agg(md5(n::text), '') FROM generate_series(1, 200) n));
UPDATE plain SET name = 'third again' WHERE id = 3;
UPDATE plain SET id = 30 WHERE id = 1;
DELETE FROM plain WHERE id = 2;
INSERT INTO typed (id, exact, moment, instant) VALUES (3, -0.01, '1969-12-31 23:59:59.999999', '1969-12-31 23:59:59.5+00');
UPDATE typed SET words = 'déjà vu ☃', feeling = 'cross', raw = '' WHERE id = 1;
UPDATE typed SET words = NULL WHERE id = 1;
UPDATE full_rows SET b = 'uno' WHERE a = 1;
INSERT INTO full_rows VALUES (2, NULL);
DELETE FROM full_rows WHERE a = 2;
UPDATE two_keys SET c = 'changed' WHERE a = 1;
UPDATE two_keys SET b = 'y' WHERE a = 1;
BEGIN;
INSERT INTO plain (name) VALUES ('in one');
INSERT INTO two_keys VALUES (2, 'x', NULL);
DELETE FROM two_keys WHERE a = 2;
COMMIT;
BEGIN;
INSERT INTO plain (name) VALUES ('never');
ROLLBACK;
ALTER TABLE plain ADD COLUMN more int;
INSERT INTO plain (name, more) VALUES ('wider', 7);
TRUNCATE full_rows;
INSERT INTO plain (name) VALUES ('end');
