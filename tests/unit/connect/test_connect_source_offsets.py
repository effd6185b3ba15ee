"""The records of connect-offsets and their fold."""

from tidelog.connect.runtime.offsets import OffsetState, offset_record


def test_source_offsets_are_by_connector_and_partition_whatever_the_order_of_its_keys():
    state = OffsetState()
    key, value = offset_record("a", {"table": "t", "db": "d"}, {"id": 3})
    assert (key, value) == (b'["a",{"db":"d","table":"t"}]', b'{"id":3}')
    state.take(b'["a",{"table":"t","db":"d"}]', b'{"id":2}', 0)
    state.take(key, value, 1)
    for junk in (b"", None, b"[", b'["a"]', b'["a",1]', b"[" * 100_000):
        state.take(junk, value, 2)
    assert state.of("a") == [({"db": "d", "table": "t"}, {"id": 3})]
    assert state.get("a", {"table": "t", "db": "d"}) == {"id": 3}
    state.take(key, None, 3)
    assert (state.of("a"), state.get("b", {})) == ([], None)
