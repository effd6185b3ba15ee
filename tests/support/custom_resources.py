"""Kinds of objects that operators bring into a cluster, as JSON Schemas: the fields that the chart uses, and no other.

Source: the definitions of prometheus-operator (monitoring.coreos.com/v1) and of the Spark operator
(sparkoperator.k8s.io/v1beta2), whose own schemas took what the chart renders.
"""

from typing import Any, Final

_TEXT: Final = {"type": "string"}
_COUNT: Final = {"type": "integer"}
_ANY: Final[dict[str, Any]] = {"type": "object"}


def _of(required: str = "", **fields: Any) -> dict[str, Any]:
    return {"type": "object", "additionalProperties": False, "required": required.split(), "properties": fields}


def _each(of: Any) -> dict[str, Any]:
    return {"type": "array", "items": of}


def _kind(version: str, kind: str, spec: Any) -> dict[str, Any]:
    return _of(
        "apiVersion kind metadata spec", apiVersion={"const": version}, kind={"const": kind}, metadata=_ANY, spec=spec
    )


_POD: Final = {
    "cores": _COUNT,
    "memory": _TEXT,
    "serviceAccount": _TEXT,
    "labels": {"type": "object", "additionalProperties": _TEXT},
    "env": _each(_of("name", name=_TEXT, value=_TEXT, valueFrom=_ANY)),
    "envFrom": _each(_ANY),
    "podSecurityContext": _ANY,
    "securityContext": _ANY,
    "volumeMounts": _each(_of("name mountPath", name=_TEXT, mountPath=_TEXT)),
    "nodeSelector": _ANY,
    "tolerations": _each(_ANY),
}
_SPARK: Final = _of(
    "type sparkVersion driver executor",
    type={"enum": ["Java", "Python", "Scala", "R"]},
    pythonVersion={"enum": ["2", "3"]},
    mode={"enum": ["cluster", "client"]},
    sparkVersion=_TEXT,
    image=_TEXT,
    imagePullPolicy=_TEXT,
    imagePullSecrets=_each(_TEXT),
    mainApplicationFile=_TEXT,
    arguments=_each(_TEXT),
    restartPolicy=_of("", type={"enum": ["Never", "Always", "OnFailure"]}),
    volumes=_each(_ANY),
    sparkConf={"type": "object", "additionalProperties": _TEXT},
    driver=_of("", **_POD),
    executor=_of("", **_POD, instances={"type": "integer", "minimum": 1}, memoryOverhead=_TEXT),
)

_TEXTS: Final[dict[str, Any]] = {"type": "object", "additionalProperties": _TEXT}
_ALARM: Final = _of(
    "alert expr",
    alert=_TEXT,
    expr=_TEXT,
    labels=_TEXTS,
    annotations=_TEXTS,
    # A keyword of Python's.
    **{"for": {"type": "string", "pattern": "^(0|([0-9]+(ms|[smhdwy]))+)$"}},
)

SCHEMAS: Final = {
    "ServiceMonitor": _kind(
        "monitoring.coreos.com/v1",
        "ServiceMonitor",
        _of(
            "endpoints selector",
            jobLabel=_TEXT,
            namespaceSelector=_of("", matchNames=_each(_TEXT)),
            selector=_of("", matchLabels=_ANY),
            endpoints=_each(_of("", port=_TEXT, path=_TEXT, interval=_TEXT)),
        ),
    ),
    "PrometheusRule": _kind(
        "monitoring.coreos.com/v1",
        "PrometheusRule",
        _of("groups", groups=_each(_of("name rules", name=_TEXT, rules=_each(_ALARM)))),
    ),
    "ScheduledSparkApplication": _kind(
        "sparkoperator.k8s.io/v1beta2",
        "ScheduledSparkApplication",
        _of(
            "schedule template",
            schedule=_TEXT,
            concurrencyPolicy={"enum": ["Allow", "Forbid", "Replace"]},
            successfulRunHistoryLimit=_COUNT,
            failedRunHistoryLimit=_COUNT,
            template=_SPARK,
        ),
    ),
}
