create extension if not exists hstore; create extension if not exists citext; create extension if not exists ltree;
create type mood as enum ('sad','ok','happy');
create domain positive as integer check (value > 0);
create table kinds(
 id serial primary key, b boolean, i2 smallint, i4 integer not null default 7, i8 bigint, f4 real, f8 double precision,
 n92 numeric(9,2), n numeric, m money, c1 char(1), c5 char(5), vc varchar(20) default 'none', t text not null default 'x', ci citext,
 by bytea, j json, jb jsonb, x xml, u uuid, d date, tm time, tm3 time(3), tmz timetz, ts timestamp, ts3 timestamp(3), ts0 timestamp(0), tz timestamptz, tz0 timestamptz(0), iv interval,
 bt1 bit(1), bt5 bit(5), vb bit varying(20), ip inet, net cidr, mac macaddr, mo mood, po positive, hs hstore, lt ltree, o oid, na name,
 r4 int4range, rts tsrange, pt point, tv tsvector,
 a4 int[], a8 bigint[], at text[], an numeric(6,2)[], ab boolean[], ad date[], ats timestamp[], au uuid[], am mood[], aj jsonb[], av varchar(5)[], af8 float8[], atz timestamptz[]);
create table nokey(a int, b text);
create table full_identity(id int primary key, a text, big text); alter table full_identity replica identity full;
alter table full_identity alter column big set storage external;
create table toasted(id int primary key, big text not null, arr text[], n int, bin bytea); alter table toasted alter column big set storage external; alter table toasted alter column arr set storage external; alter table toasted alter column bin set storage external;
create table two_keys(a int, b text, v text, primary key(b, a));
create table by_index(a int not null, v text, w text); create unique index by_index_i on by_index(a); alter table by_index replica identity using index by_index_i;
create table nothing_identity(id int primary key, a text); alter table nothing_identity replica identity nothing;
insert into kinds(id,b,i2,i4,i8,f4,f8,n92,n,m,c1,c5,vc,t,ci,by,j,jb,x,u,d,tm,tm3,tmz,ts,ts3,ts0,tz,tz0,iv,bt1,bt5,vb,ip,net,mac,mo,po,hs,lt,o,na,r4,rts,pt,tv,a4,a8,at,an,ab,ad,ats,au,am,aj,av,af8,atz)
values (1,true,-5,42,9007199254740993,1.5,2.25,1234.50,123456789.0123,12.34,'z','ab','hello','tëxt','MiXed','\x00ff10','{"a": 1}','{"b": [1,2]}','<a>1</a>','a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11','2026-11-23','13:14:15.123456','13:14:15.123','13:14:15.5+02','2026-11-23 01:02:03.456789','2026-11-23 01:02:03.456','2026-11-23 01:02:03','2026-11-23 01:02:03.4+01','2026-11-23 01:02:03+01','1 year 2 months 3 days 04:05:06.789','1','10101','1011','10.0.0.1','10.0.0.0/8','08:00:2b:01:02:03','ok',5,'a=>1,b=>NULL','a.b.c',4000000000,'nm','[1,5)','["2026-01-01 00:00:00","2026-01-02 00:00:00")','(1.5,2.5)','a b',
 '{1,NULL,3}','{1,2}','{a,"b c",NULL,"q\"x"}','{1.50,2.25}','{t,f}','{2026-11-23}','{"2026-11-23 01:02:03.456"}','{a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11}','{ok,sad}','{"{\"a\": 1}"}','{ab,cd}','{1.5,NaN}','{"2026-11-23 01:02:03+01"}');
insert into kinds(id) values (2);
insert into nokey values (1,'a'); insert into full_identity values (1,'a',repeat('x',3000)); insert into two_keys values (1,'b','v');
