"""`ssl.principal.mapping.rules`: KIP-371's examples, and what is no rule."""

import pytest

from tidelog.access.principal_rules import NoPrincipalError, PrincipalRules
from tidelog.log.base.errors import InvalidConfigError

DUKE = "CN=Duke,OU=ServiceUsers,O=Org,C=US"
KIP_371 = (
    "RULE:^CN=(.*?),OU=ServiceUsers.*$/$1/, RULE:^CN=(.*?),OU=(.*?),O=(.*?),L=(.*?),ST=(.*?),C=(.*?)$/$1@$2/L,"
    "RULE:^.*[Cc][Nn]=([a-zA-Z0-9.]*).*$/$1/U,DEFAULT"
)


@pytest.mark.parametrize(
    ("rules", "name", "principal"),
    [
        ("DEFAULT", DUKE, f"User:{DUKE}"),
        ("", DUKE, f"User:{DUKE}"),
        (KIP_371, DUKE, "User:Duke"),
        (KIP_371, "CN=Duke,OU=SME,O=mycp,L=Fulton,ST=MD,C=US", "User:duke@sme"),
        (KIP_371, "cn=duke,ou=sme,o=mycp,l=fulton,st=md,c=us", "User:DUKE"),
        (KIP_371, "C=US", "User:C=US"),
        (r"RULE:^CN=(a\/b),.*$/$1/,DEFAULT", "CN=a/b,O=x", "User:a/b"),
        ("RULE:^CN=(.{1,4}),.*$/$1/", "CN=Duke,O=x", "User:Duke"),
        ("RULE:CN=x/only/", "CN=x", "User:only"),
    ],
)
def test_principals(rules: str, name: str, principal: str) -> None:
    assert PrincipalRules(rules).principal(name) == principal


def test_a_name_without_a_rule_has_no_principal() -> None:
    with pytest.raises(NoPrincipalError, match="Add one, or DEFAULT"):
        PrincipalRules("RULE:^CN=(.*),O=x$/$1/").principal("CN=Duke,O=y")


@pytest.mark.parametrize(
    "rules",
    ["RULE", "default", "RULE:^CN=(.*)$/$1", "RULE:^CN=(.*)$/$1/X", "RULE:^CN=($/$1/", "RULE:^CN=x$/$1/", ",,x"],
)
def test_what_is_no_rule(rules: str) -> None:
    with pytest.raises(InvalidConfigError, match="is no rule"):
        PrincipalRules(rules)
