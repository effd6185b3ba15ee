"""Where there is no compiler, all is built and works, and says why; test_distributions.py builds the native part."""

from support.distributions import BUILT, distributions, said_by_the_reader


def test_without_a_compiler_there_is_a_reader_in_python(tmp_path, monkeypatch):
    monkeypatch.delenv(BUILT, raising=False)  # whatever `make dist` has built
    monkeypatch.setenv("CC", "/bin/false")
    read, reader = said_by_the_reader(distributions(tmp_path)["wheel"], tmp_path / "site")
    assert read == "[300] b'v' AiokafkaRecords"
    assert reader.startswith("Python: native code was not built")
