"""The Helm chart, as it was rendered for five typical sets of values: objects that Kubernetes takes, commands that are
there, addresses that lead to pods, and pods without rights. `make compat` renders it by Helm itself.
"""

import json
import re
from collections.abc import Iterator
from typing import Any

import jsonschema
import kubernetes_validate
import pytest
import yaml
from support.charts import CHART, NAMES, NAMESPACE, RENDER, digest, documents, kept
from support.custom_resources import SCHEMAS
from support.tools import ROOT
from typer.main import get_command

from tidelog.cli.connect.worker_file import read_worker_file
from tidelog.cli.main import app
from tidelog.cli.serving.config_file import read_config
from tidelog.cli.serving.configuration import checked
from tidelog.cli.serving.kafka_file import KeyOutcome
from tidelog.cli.serving.registry_serving import given_settings, http_settings
from tidelog.jobs import compaction, maintain

OBJECTS = {name: list(documents(name)) for name in NAMES}
EACH = [
    pytest.param(name, one, id=f"{name}-{one['kind']}-{one['metadata']['name']}")
    for name in NAMES
    for one in OBJECTS[name]
]
# The oldest release of Kubernetes that the chart is for, and the newest whose schemas are here.
RELEASES = ("1.29", "1.37")


def of_kind(name: str, kind: str) -> dict[str, Any]:
    return {one["metadata"]["name"]: one for one in OBJECTS[name] if one["kind"] == kind}


def pods(name: str) -> Iterator[tuple[str, Any]]:
    """(name of its object, pod's template) of all that makes pods, except Spark's."""
    for one in OBJECTS[name]:
        if one["kind"] in ("StatefulSet", "Deployment"):
            yield one["metadata"]["name"], one["spec"]["template"]
        elif one["kind"] == "CronJob":
            yield one["metadata"]["name"], one["spec"]["jobTemplate"]["spec"]["template"]
        elif one["kind"] == "Pod":
            yield one["metadata"]["name"], one


PODS = [pytest.param(name, pod, id=f"{name}-{at}") for name in NAMES for at, pod in pods(name)]


def filled(text: str, pod: str = "x-broker-0") -> str:
    """A text with its variables of the environment, as a kubelet fills them in."""
    return text.replace("$(POD_NAME)", pod).replace("$(POD_IP)", "10.0.0.7")


@pytest.mark.parametrize("name", NAMES)
def test_what_was_rendered_is_of_this_chart(name):
    first = kept(name).read_text().partition("\n")[0]
    assert digest() in first, f"the chart has changed since: {RENDER}"


@pytest.mark.parametrize(("name", "one"), EACH)
def test_kubernetes_takes_an_object(name, one):
    if one["kind"] in SCHEMAS:
        jsonschema.validate(one, SCHEMAS[one["kind"]])
    else:
        for release in RELEASES:
            kubernetes_validate.validate(one, release, strict=True)
    assert one["metadata"]["namespace"] == NAMESPACE
    assert len(one["metadata"]["name"]) <= 52  # a CronJob's; a Service's is 63


@pytest.mark.parametrize(("name", "pod"), PODS)
def test_a_pod_has_no_rights_that_it_needs_none_of(name, pod):
    spec = pod["spec"]
    assert spec["securityContext"]["runAsNonRoot"] is True
    assert spec["securityContext"]["runAsUser"] > 0
    assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert spec["automountServiceAccountToken"] is False
    # A Service called tidelog-broker would have variables TIDELOG_BROKER_… set, which no setting has.
    assert spec["enableServiceLinks"] is False
    for container in spec["containers"]:
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }
        assert container["resources"]["requests"].keys() == {"cpu", "memory"}
        assert "memory" in container["resources"]["limits"]
        assert "/tmp" in {mount["mountPath"] for mount in container["volumeMounts"]}


@pytest.mark.parametrize(("name", "pod"), PODS)
def test_a_pods_parts_refer_to_one_another(name, pod):
    spec, (container,) = pod["spec"], pod["spec"]["containers"]
    ports = {port["name"] for port in container.get("ports", ())}
    assert {mount["name"] for mount in container["volumeMounts"]} == {volume["name"] for volume in spec["volumes"]}
    for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
        if probe in container:
            assert container[probe]["httpGet"]["port"] in ports
    for volume in spec["volumes"]:
        if "configMap" in volume:
            assert volume["configMap"]["name"] in of_kind(name, "ConfigMap")
        if "persistentVolumeClaim" in volume:
            assert volume["persistentVolumeClaim"]["claimName"] in of_kind(name, "PersistentVolumeClaim")
    assert spec["serviceAccountName"] in of_kind(name, "ServiceAccount")


@pytest.mark.parametrize("name", NAMES)
def test_services_budgets_and_policies_select_pods(name):
    templates = [pod for _, pod in pods(name)]

    def selected(labels):
        named = {key: value for key, value in labels.items() if key != "statefulset.kubernetes.io/pod-name"}
        return [pod for pod in templates if named.items() <= pod["metadata"]["labels"].items()]

    for service in of_kind(name, "Service").values():
        found = selected(service["spec"]["selector"])
        assert found
        ports = {port["name"] for pod in found for one in pod["spec"]["containers"] for port in one.get("ports", ())}
        assert {port["targetPort"] for port in service["spec"]["ports"]} <= ports
    for budget in of_kind(name, "PodDisruptionBudget").values():
        assert selected(budget["spec"]["selector"]["matchLabels"])
        assert budget["spec"]["maxUnavailable"] == 1
    for policy in of_kind(name, "NetworkPolicy").values():
        assert selected(policy["spec"]["podSelector"]["matchLabels"])
    for monitor in of_kind(name, "ServiceMonitor").values():
        labels = monitor["spec"]["selector"]["matchLabels"].items()
        assert [one for one in of_kind(name, "Service").values() if labels <= one["metadata"]["labels"].items()]


def parsed(words: list[str]) -> list[str]:
    """The path of a command whose words the command line takes. Raises what it raises for one that is wrong."""
    command, context, name, path = get_command(app), None, "tidelog", []
    while True:
        context = command.make_context(name, list(words), parent=context)
        path.append(name)
        if not hasattr(command, "resolve_command"):
            return path
        name, command, words = command.resolve_command(context, [*context._protected_args, *context.args])


@pytest.mark.parametrize(("name", "pod"), PODS)
def test_a_containers_command_is_one_that_is_there(name, pod):
    (container,) = pod["spec"]["containers"]
    assert "command" not in container  # the image's own
    path = parsed([filled(word) for word in container["args"]])
    assert path[1] in ("broker", "registry", "console", "connect", "maintain")
    assert all(type(word) is str for word in container["args"])


def test_a_command_with_an_option_that_is_none_is_noticed():
    with pytest.raises(Exception, match="No such option: --metric"):
        parsed(["broker", "start", "--metric", "0.0.0.0:9404"])


def test_spark_runs_jobs_that_are_there():
    found = {}
    for one in of_kind("spark", "ScheduledSparkApplication").values():
        template = one["spec"]["template"]
        job = template["mainApplicationFile"].removeprefix("local:///opt/tidelog/jobs/").removesuffix(".py")
        found[job] = template["arguments"]
    assert found.keys() == {"maintain", "compaction"}
    for job, arguments in found.items():
        program = {"maintain": maintain.main, "compaction": compaction.main}[job].args[0]
        get_command(program).make_context(job, list(arguments))


@pytest.mark.parametrize("name", [name for name in NAMES if of_kind(name, "StatefulSet")])
def test_each_broker_has_an_id_and_addresses_of_its_own(tmp_path, name):
    ((brokers, stateful),) = of_kind(name, "StatefulSet").items()
    files = of_kind(name, "ConfigMap")[brokers]["data"]
    (container,) = stateful["spec"]["template"]["spec"]["containers"]
    path = container["args"][container["args"].index("--config") + 1]
    headless = stateful["spec"]["serviceName"]
    assert of_kind(name, "Service")[headless]["spec"]["clusterIP"] == "None"
    ids, inside, outside = [], [], []
    for index in range(stateful["spec"]["replicas"]):
        pod = f"{brokers}-{index}"
        file = tmp_path / filled(path, pod).rpartition("/")[2]
        file.write_text(files[file.name])
        settings, taken = checked({"TIDELOG_BROKER_BROKER_RACK": ""}, read_config(str(file)), str(file))
        taken.problems.refuse()
        assert all(row.fate is KeyOutcome.USED for row in taken.rows), taken.rows
        ids.append(settings.id)
        assert settings.inter_broker == "INSIDE"
        host, port = settings.advertised["INSIDE"]
        assert host == f"{pod}.{headless}.{NAMESPACE}.svc.cluster.local"
        assert port == settings.listeners["INSIDE"].port
        inside.append(host)
        if "OUTSIDE" in settings.advertised:
            outside.append(settings.advertised["OUTSIDE"])
            service = of_kind(name, "Service")[f"{brokers}-external-{index}"]
            assert service["spec"]["selector"]["statefulset.kubernetes.io/pod-name"] == pod
            (served,) = service["spec"]["ports"]
            assert settings.advertised["OUTSIDE"][1] == served.get("nodePort", served["port"])
            listens = {one["name"]: one["containerPort"] for one in container["ports"]}[served["targetPort"]]
            assert settings.listeners["OUTSIDE"].port == listens
    assert [*ids] == [*range(ids[0], ids[0] + len(ids))]
    assert len({*inside}) == len(inside)
    assert len({*outside}) == len(outside)


@pytest.mark.parametrize("name", NAMES)
def test_servers_of_http_take_their_files(tmp_path, name):
    for one in of_kind(name, "Deployment").values():
        component = one["metadata"]["labels"]["app.kubernetes.io/component"]
        (text,) = of_kind(name, "ConfigMap")[one["metadata"]["name"]]["data"].values()
        file = tmp_path / f"{component}.properties"
        file.write_text(text)
        (container,) = one["spec"]["template"]["spec"]["containers"]
        authenticates = "--authenticate" in container["args"]
        secured = "tls" in {volume["name"] for volume in one["spec"]["template"]["spec"]["volumes"]}
        if component == "connect":
            tls = read_worker_file(str(file), authenticate=authenticates).tls
        else:
            given = given_settings(str(file), {})
            tls = http_settings(given, component, authenticate=authenticates).tls
        assert (tls is not None) == secured
        assert tls is None or tls.keystore == "/etc/tidelog/tls"


def test_large_numbers_are_written_as_numbers():
    texts = [kept(name).read_text() for name in NAMES]
    assert any("cache.bytes=268435456\n" in text for text in texts)
    assert any("lake.store.request.timeout.ms=3000000" in text for text in texts)
    assert not any(re.search(r"\de\+\d\d", text) for text in texts)


def test_jobs_never_run_twice_at_once_and_brokers_leave_maintenance_to_them():
    for name in NAMES:
        jobs = {**of_kind(name, "CronJob"), **of_kind(name, "ScheduledSparkApplication")}
        assert all(one["spec"]["concurrencyPolicy"] == "Forbid" for one in jobs.values())
        for stateful in of_kind(name, "StatefulSet").values():
            args = stateful["spec"]["template"]["spec"]["containers"][0]["args"]
            assert ("--no-maintain" in args) == any(one.endswith("-maintain") for one in jobs)


def test_a_lake_on_a_disk_keeps_all_pods_on_its_machine():
    for _, pod in pods("trial"):
        (term,) = pod["spec"]["affinity"]["podAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
        assert term["topologyKey"] == "kubernetes.io/hostname"
        assert term["labelSelector"]["matchLabels"].items() <= pod["metadata"]["labels"].items()


def test_a_role_is_that_of_the_component_else_of_all():
    accounts = of_kind("s3", "ServiceAccount")
    roles = {name: one["metadata"]["annotations"]["eks.amazonaws.com/role-arn"] for name, one in accounts.items()}
    assert roles["lake-tidelog-broker"] == roles["lake-tidelog-registry"] == "arn:aws:iam::111122223333:role/tidelog"
    assert roles["lake-tidelog-maintain"] == "arn:aws:iam::111122223333:role/tidelog-maintain"


OPS = ROOT / "docs/ops"


def test_alarms_and_dashboards_are_those_of_the_documentation():
    (rule,) = of_kind("s3", "PrometheusRule").values()
    assert [group["name"] for group in rule["spec"]["groups"]] == ["tidelog"]
    assert rule["metadata"]["labels"]["release"] == "prometheus"
    board = of_kind("s3", "ConfigMap")["lake-tidelog-dashboards"]
    found = {name.replace("tidelog", "grafana", 1): json.loads(text)["uid"] for name, text in board["data"].items()}
    boards = {path.name: json.loads(path.read_text())["uid"] for path in OPS.glob("grafana-*.json")}
    assert found == boards
    linked = {path.name: path.resolve() for path in (CHART / "ops").iterdir()}
    assert linked == {name: OPS / name for name in (*boards, "prometheus.rules.yml")}
    assert board["metadata"]["labels"]["grafana_dashboard"] == "1"
    assert board["metadata"]["annotations"] == {"grafana_folder": "tidelog"}
    for name in {*NAMES} - {"s3"}:
        assert not of_kind(name, "PrometheusRule")
        assert not [one for one in of_kind(name, "ConfigMap") if one.endswith("-dashboards")]


@pytest.mark.parametrize("name", NAMES)
def test_what_stays_up_sends_to_the_collector_and_jobs_do_not(name):
    for at, pod in pods(name):
        (container,) = pod["spec"]["containers"]
        sends = name == "s3" and at in ("lake-tidelog-broker", "lake-tidelog-registry")
        args = container["args"]
        given = args[args.index("--otlp") + 1] if "--otlp" in args else None
        assert given == ("http://collector.monitoring.svc:4318" if sends else None)
        variables = [one["name"] for one in container["env"]]
        assert ("OTEL_TRACES_SAMPLER" in variables) == sends
        assert ({"secretRef": {"name": "collector"}} in container.get("envFrom", ())) == sends
        assert len({*variables}) == len(variables)


# --- values ----------------------------------------------------------------------------------------------------

VALUES = yaml.safe_load((CHART / "values.yaml").read_text())
SCHEMA = json.loads((CHART / "values.schema.json").read_text())


def merged(values, changes):
    if not isinstance(changes, dict) or not isinstance(values, dict):
        return changes
    return values | {key: merged(values.get(key), change) for key, change in changes.items()}


@pytest.mark.parametrize("name", NAMES)
def test_the_schema_takes_typical_values(name):
    own = yaml.safe_load((CHART / f"ci/{name}-values.yaml").read_text())
    jsonschema.validate(merged(VALUES, own), SCHEMA)


PAGE = (ROOT / "docs/kubernetes.md").read_text()


@pytest.mark.parametrize("text", re.findall(r"^```yaml\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL))
def test_the_schema_takes_the_pages_values(text):
    jsonschema.validate(merged(VALUES, yaml.safe_load(text)), SCHEMA)


WRONG = {
    "broker: {}": "broker",
    "brokers: {replicas: 0}": "replicas",
    "brokers: {replicas: '3'}": "replicas",
    "brokers: {listener: {protocol: TLS}}": "protocol",
    "brokers: {listener: {port: 70000}}": "port",
    "brokers: {external: {type: Ingress}}": "type",
    "brokers: {external: {firstNodePort: 9094}}": "firstNodePort",
    "brokers: {tls: {clientAuth: yes}}": "clientAuth",
    "brokers: {tls: {secretName: 'Kafka TLS'}}": "secretName",
    "brokers: {config: {super.users: [User:a]}}": "super.users",
    "lake: {address: /data/lake}": "address",
    "lake: {options: {s3.endpoint: http://minio}}": "options",
    "lake: {env: [{value: x}]}": "env",
    "lake: {volume: {accessModes: []}}": "accessModes",
    "log: {format: xml}": "format",
    "maintenance: {by: airflow}": "by",
    "maintenance: {schedule: every 5 minutes}": "schedule",
    "compaction: {by: brokers}": "by",
    "image: {digest: latest}": "digest",
    "registry: {port: http}": "port",
    "console: {ingress: {hosts: []}}": "ingress",
    "spark: {executor: {memory: 2Gi}}": "memory",
    "metrics: {serviceMonitor: {interval: often}}": "interval",
    "metrics: {dashboards: {labels: {grafana_dashboard: 1}}}": "grafana_dashboard",
    "metrics: {rules: true}": "rules",
    "otlp: {url: 'collector:4318'}": "url",
    "otlp: {url: 'http://me:secret@collector:4318'}": "url",
    "otlp: {headers: {}}": "headers",
}


@pytest.mark.parametrize("text", WRONG)
def test_the_schema_refuses_a_wrong_value(text):
    checker = jsonschema.Draft202012Validator(SCHEMA)
    errors = [*checker.iter_errors(merged(VALUES, yaml.safe_load(text)))]
    assert len(errors) == 1, errors
    assert WRONG[text] in [*errors[0].absolute_path, *re.findall(r"'([^']+)'", errors[0].message)]


def test_each_value_has_a_place_in_the_schema_and_a_use_in_a_template():
    texts = "".join(path.read_text() for path in (CHART / "templates").rglob("*") if path.is_file())
    used = {*re.findall(r"\.([A-Za-z]\w*)", texts)}
    assert [path for path in _paths(VALUES) if path[-1] not in used] == []
    assert SCHEMA["properties"].keys() - {"global"} == VALUES.keys()


def _paths(values, before=()):
    for key, value in values.items():
        yield (*before, key)
        if isinstance(value, dict) and key != "resources":
            yield from _paths(value, (*before, key))
