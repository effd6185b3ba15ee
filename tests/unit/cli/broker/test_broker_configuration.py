"""Configuration files of brokers: Kafka's keys become settings, and what is wrong is named."""

import pickle

import pytest

from tidelog.cli.broker.planning import planned_settings
from tidelog.cli.serving.config_file import read_config
from tidelog.cli.serving.configuration import given_by_environment, given_by_file, settings_of
from tidelog.cli.serving.plan import BrokerPlan
from tidelog.commands.failures import UsageProblemError
from tidelog.log.base.properties import properties
from tidelog.server.base.listener_settings import ClientAuth, ListenerSettings, SecurityProtocol, TlsSettings

SSL, SASL_SSL, PLAINTEXT = SecurityProtocol.SSL, SecurityProtocol.SASL_SSL, SecurityProtocol.PLAINTEXT
TWO = """
# inside and outside
listeners=INSIDE://10.0.0.1:9092, OUTSIDE://:9093
advertised.listeners=OUTSIDE://kafka.example.com:9093
listener.security.protocol.map=INSIDE:SSL,OUTSIDE:SASL_SSL
inter.broker.listener.name=INSIDE
ssl.keystore.location=/etc/broker.pem
ssl.truststore.location=/etc/authority.pem
ssl.client.auth=required
listener.name.outside.ssl.keystore.location=/etc/outside.pem
listener.name.outside.ssl.key.password=s3cret
listener.name.outside.sasl.enabled.mechanisms=PLAIN,SCRAM-SHA-512
ssl.principal.mapping.rules=RULE:^CN=(.*?),.*$/$1/L,DEFAULT
super.users=User:admin;User:CN=ann,O=Example
broker.id=3
broker.rack=a
max.connections=100
connections.max.reauth.ms=3600000
"""


def settings(text, environment=None, addresses=None):
    return settings_of(
        given_by_file(properties(text), "broker.properties") | given_by_environment(environment or {}), addresses
    )


def refusal(text):
    with pytest.raises(UsageProblemError) as refused:
        settings(text)
    return str(refused.value)


def test_listeners_of_two_kinds():
    found = settings(TWO)
    rules = "RULE:^CN=(.*?),.*$/$1/L,DEFAULT"
    inside = TlsSettings("/etc/broker.pem", None, "/etc/authority.pem", ClientAuth.REQUIRED, principal_rules=rules)
    # Kafka: ssl.client.auth of all listeners does not count where clients log in by SASL (KIP-684)
    outside = TlsSettings("/etc/outside.pem", "s3cret", "/etc/authority.pem", ClientAuth.NONE, principal_rules=rules)
    assert found.listeners == {
        "INSIDE": ListenerSettings("10.0.0.1", 9092, SSL, inside),
        "OUTSIDE": ListenerSettings("0.0.0.0", 9093, SASL_SSL, outside, ("PLAIN", "SCRAM-SHA-512")),
    }
    assert found.advertised == {"OUTSIDE": ("kafka.example.com", 9093)}
    assert found.inter_broker == "INSIDE"
    assert (found.id, found.rack, found.bounds.max_connections) == (3, "a", 100)
    assert found.sasl.max_reauth_s == 3600
    assert found.access.super_users == {"User:admin", "User:CN=ann,O=Example"}
    assert not found.everyone


def test_without_a_file_there_is_one_listener_for_this_machine():
    found = settings("")
    assert found.listeners == {"PLAINTEXT": ListenerSettings("127.0.0.1", 9092)}
    assert found.everyone
    assert found.id is found.rack is found.inter_broker is None


def test_the_environment_comes_before_the_file():
    environment = {"TIDELOG_BROKER_MAX_CONNECTIONS": "7", "TIDELOG_BROKER_SUPER_USERS": "User:root", "PATH": "/bin"}
    found = settings(TWO, environment)
    assert (found.bounds.max_connections, found.access.super_users) == (7, {"User:root"})


@pytest.mark.parametrize("server", ["registry", "console", "Console"])
def test_settings_of_servers_beside_brokers_may_stand_in_the_same_file(server):
    found = settings(f"listeners=PLAINTEXT://:9092\nlistener.name.{server}.ssl.keystore.location=x.pem")
    assert list(found.listeners) == ["PLAINTEXT"]


def test_a_listener_of_sasl_has_scram_where_nothing_else_is_said():
    found = settings("listeners=SASL_PLAINTEXT://:9092")
    assert found.listeners["SASL_PLAINTEXT"].mechanisms == ("SCRAM-SHA-256", "SCRAM-SHA-512")


def test_an_empty_algorithm_checks_no_names():
    text = "listeners=SSL://:9092\nssl.keystore.location=b.pem\nssl.endpoint.identification.algorithm="
    assert settings(text).listeners["SSL"].tls == TlsSettings("b.pem", checks_host=False)


def test_tokens():
    found = settings(
        "listeners=SASL_PLAINTEXT://:9092\nsasl.enabled.mechanisms=OAUTHBEARER\n"
        "sasl.oauthbearer.jwks.endpoint.url=https://id.example/keys\nsasl.oauthbearer.expected.audience=a, b\n"
        "sasl.oauthbearer.clock.skew.seconds=5\nsasl.oauthbearer.jwks.endpoint.refresh.ms=60000\n"
        "sasl.oauthbearer.sub.claim.name=client\nsasl.oauthbearer.scope.claim.name=scp\n"
        "sasl.oauthbearer.expected.scope=read,write\nsasl.oauthbearer.expected.issuer=https://id.example"
    ).sasl.tokens
    assert (found.jwks, found.audiences, found.clock_skew_s, found.refresh_s) == (
        "https://id.example/keys",
        ("a", "b"),
        5,
        60.0,
    )
    assert (found.sub_claim, found.scope_claim, found.scopes) == ("client", "scp", ("read", "write"))
    assert found.issuer == "https://id.example"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "max.conections=1",
            "broker.properties has max.conections, which is no setting of a broker. Do you mean max.con",
        ),
        ("security.inter.broker.protocol=SSL", "no listener is SSL. Name one of PLAINTEXT as inter.broker.listener"),
        ("max.connections=many", "broker.properties has max.connections='many', and max.connections is a whole number"),
        ("broker.id=one", "broker.id is a whole number"),
        ("broker.id=1\nnode.id=2", "broker.id and node.id differ"),
        ("allow.everyone.if.no.acl.found=perhaps", "is true or false"),
        ("super.users=admin", "Write User:NAME"),
        ("listeners=127.0.0.1:9092", "Write NAME://HOST:PORT"),
        ("listeners=PLAINTEXT://127.0.0.1", "write HOST:PORT"),
        ("listeners=PLAINTEXT://:1,PLAINTEXT://:2", "PLAINTEXT is there twice"),
        ("listeners=INSIDE://:9092", "Add INSIDE:PROTOCOL to listener.security.protocol.map"),
        ("listener.security.protocol.map=A:TLS", "'A:TLS' names no protocol"),
        ("advertised.listeners=SSL://x:1", "SSL is none of listeners"),
        ("advertised.listeners=PLAINTEXT://:1", "needs a host and a port that clients can connect to"),
        ("inter.broker.listener.name=SSL", "SSL is none of listeners"),
        ("listener.name.outside.ssl.client.auth=none", "OUTSIDE is none of listeners"),
        ("listeners=SSL://:1", "needs a certificate: name a file with it and its key"),
        ("listeners=SASL_PLAINTEXT://:1\nsasl.enabled.mechanisms=GSSAPI", "brokers have no GSSAPI"),
        ("listeners=SASL_PLAINTEXT://:1\nsasl.enabled.mechanisms=OAUTHBEARER", "jwks.endpoint.url"),
        ("sasl.oauthbearer.expected.issuer=x", "need sasl.oauthbearer.jwks.endpoint.url"),
    ],
)
def test_what_is_wrong_is_named(text, said):
    refused = refusal(text)
    assert said in refused
    assert "s3cret" not in refused


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ("ssl.keystore.type=BCFKS", "BCFKS is none of PEM, PKCS12, JKS"),
        ("ssl.client.auth=maybe", "none, requested, required"),
        ("ssl.client.auth=requested", "Any authority of the system's could else make a principal"),
        ("ssl.enabled.protocols=TLSv1.1", "'TLSv1.1' is none of TLSv1.2, TLSv1.3"),
        ("ssl.principal.mapping.rules=RULE:x", "is no rule"),
        ("ssl.endpoint.identification.algorithm=ldap", "neither https nor empty"),
    ],
)
def test_what_is_wrong_with_tls_is_named(more, said):
    assert said in refusal(f"listeners=SSL://:1\nssl.keystore.location=b.pem\n{more}")


# --- files -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("a=b", {"a": "b"}),
        (" a.b  :  c d \n", {"a.b": "c d"}),
        ("a b=c", {"a": "b=c"}),
        ("a", {"a": ""}),
        ("#a=1\n!b=2\n\na=3", {"a": "3"}),
        ("a=b,\\\n   c,\\\n   d\ne=f", {"a": "b,c,d", "e": "f"}),
        ("a=1\na=2", {"a": "2"}),
        (r"a\:b=\u00e9\tx\\", {"a:b": "é\tx\\"}),
        ("a=b\\", {"a": "b"}),
    ],
)
def test_properties_are_read_as_java_reads_them(text, found):
    assert properties(text) == found


def test_toml_says_the_same_with_tables_and_without(tmp_path):
    path = tmp_path / "broker.toml"
    path.write_text(
        'listeners = ["SSL://:9092", "PLAINTEXT://:9093"]\n"max.connections" = 5\n"max.connections.per.ip" = 2\n'
        'allow.everyone.if.no.acl.found = false\nbroker.id = 1\n[ssl.keystore]\nlocation = "b.pem"\n'
    )
    found = settings_of(given_by_file(read_config(str(path)), str(path)))
    assert [one.protocol for one in found.listeners.values()] == [SSL, PLAINTEXT]
    assert (found.bounds.max_connections, found.bounds.max_connections_per_ip, found.id) == (5, 2, 1)
    assert found.access.everyone is False


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("none.properties", None, "can't be read: No such file"),
        ("bad.properties", b"\xff\xfe", "is no text in UTF-8"),
        ("bad.toml", b"max.connections = 1\nmax.connections.per.ip = 2", "put between quotes"),
    ],
)
def test_files_that_can_not_be_read(tmp_path, name, content, said):
    path = tmp_path / name
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(UsageProblemError, match=said):
        read_config(str(path))


# --- plans -------------------------------------------------------------------------------------------------


def test_a_plan_reaches_another_process_as_it_is_and_ports_count_up():
    config = properties(TWO)
    found = settings(TWO)
    addresses = {name: (one.host, one.port) for name, one in found.listeners.items()}
    plan = BrokerPlan("lake", addresses, 3, "a", None, {}, found.advertised, config, "broker.properties")
    assert planned_settings(pickle.loads(pickle.dumps(plan)), {}) == found
    second = planned_settings(plan.of_process(1), {})
    assert [one.port for one in second.listeners.values()] == [9093, 9094]
    assert (second.id, second.advertised) == (4, {"OUTSIDE": ("kafka.example.com", 9094)})
    assert "s3cret" not in repr(plan)
