"""The server of Maven's binaries, for machines without Debian's package."""

from support.postgres import embedded, running_postgres


def test_a_server_of_mavens_binaries_has_logical_replication() -> None:
    with running_postgres(programs=embedded()) as server:
        server.run("CREATE TABLE t (a int, b text); INSERT INTO t VALUES (1, 'a;b'), (2, NULL)")
        assert server.run("SELECT * FROM t ORDER BY a; SELECT true") == "1\ta;b\n2\t\nt\n"
        slot = "SELECT slot_name FROM pg_create_logical_replication_slot('slot', 'pgoutput')"
        assert server.run(slot) == "slot\n"
