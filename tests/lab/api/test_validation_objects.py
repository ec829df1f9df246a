from __future__ import annotations

import base64

import pytest
from defaulted_samples import load, named, of_cluster, said_of

from gpuworkshop.lab.api import kinds
from gpuworkshop.lab.api.kinds import Kind
from gpuworkshop.lab.api.objects import Object

RULE = "{spec: {rules: [{host: '*.example.org', http: {paths: [{path: /, pathType: Prefix, backend: %s}]}}]}}"
WEB = "{service: {name: web, port: {number: 80}}}"
COLUMN = "{name: Team, type: string, jsonPath: .spec.team}"

FINE: list[tuple[Kind, str]] = [
    (kinds.SERVICE, "{spec: {selector: {app: x}, ports: [{port: 80, targetPort: http}]}}"),
    (kinds.SERVICE, "{spec: {clusterIP: None}}"),
    (kinds.SERVICE, "{spec: {type: ExternalName, externalName: example.org}}"),
    (kinds.SERVICE, "{spec: {type: NodePort, clusterIP: 10.100.0.7, ports: [{port: 80, nodePort: 30080}]}}"),
    (kinds.SERVICE, "{spec: {ports: [{name: a, port: 53}, {name: b, port: 53, protocol: UDP}]}}"),
    (kinds.ENDPOINTS, "{subsets: [{addresses: [{ip: 127.9.1.2}], ports: [{port: 80}]}]}"),
    (
        kinds.ENDPOINT_SLICE,
        "{addressType: IPv4, endpoints: [{addresses: [127.9.1.2]}], ports: [{port: 80, name: a}]}",
    ),
    (kinds.CONFIG_MAP, "{data: {a.txt: b, _: ''}, binaryData: {c: AAEC}}"),
    (
        kinds.PERSISTENT_VOLUME_CLAIM,
        "{spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}, volumeMode: Block}}",
    ),
    (kinds.SECRET, "{stringData: {password: a}}"),
    (kinds.SECRET, "{type: example.org/own, data: {a: ''}}"),
    (kinds.SECRET, "{type: kubernetes.io/dockerconfigjson, stringData: {.dockerconfigjson: '{}'}}"),
    (kinds.SECRET, "{type: kubernetes.io/basic-auth, stringData: {username: a}}"),
    (
        kinds.RESOURCE_QUOTA,
        "{spec: {hard: {pods: 5, requests.nvidia.com/gpu: 2, limits.cpu: 4, count/jobs.batch: 1}}}",
    ),
    (
        kinds.LIMIT_RANGE,
        "{spec: {limits: [{type: Container, max: {cpu: 2}, min: {cpu: 100m}}, {type: Pod}]}}",
    ),
    (kinds.POD_DISRUPTION_BUDGET, "{spec: {minAvailable: 50%, selector: {matchLabels: {a: b}}}}"),
    (kinds.ROLE, "{rules: [{apiGroups: [''], resources: [pods], verbs: [get]}]}"),
    (kinds.ROLE_BINDING, "{roleRef: {kind: Role, name: r}, subjects: [{kind: User, name: ann}]}"),
    (kinds.INGRESS, RULE % WEB),
    (kinds.INGRESS, "{spec: {defaultBackend: {service: {name: web, port: {name: http}}}}}"),
    (
        kinds.NETWORK_POLICY,
        "{spec: {podSelector: {}, ingress: [{from: [{ipBlock: {cidr: 10.0.0.0/8}}], ports: [{port: a}]}]}}",
    ),
    (kinds.LEASE, "{spec: {holderIdentity: a, leaseDurationSeconds: 40}}"),
    (kinds.EVENT, "{involvedObject: {namespace: team}}"),
    (kinds.CONTROLLER_REVISION, "{revision: 1}"),
]


@pytest.mark.parametrize(("kind", "text"), FINE, ids=[f"{i}-{c[0].kind}" for i, c in enumerate(FINE)])
def test_what_is_fine(kind: Kind, text: str) -> None:
    assert said_of(kind, named(**load(text))) == []


WRONG: list[tuple[Kind, str, str]] = [
    (kinds.SERVICE, "{}", "spec.ports: Required value"),
    (
        kinds.SERVICE,
        "{spec: {type: Best, ports: [{port: 80}]}}",
        'spec.type: Unsupported value: "Best": supported values: "ClusterIP", "ExternalName", '
        '"LoadBalancer", "NodePort"',
    ),
    (
        kinds.SERVICE,
        "{spec: {ports: [{port: 80}, {port: 81, name: b}]}}",
        "spec.ports[0].name: Required value",
    ),
    (
        kinds.SERVICE,
        "{spec: {ports: [{port: 80, name: b}, {port: 81, name: b}]}}",
        'spec.ports[1].name: Duplicate value: "b"',
    ),
    (
        kinds.SERVICE,
        "{spec: {ports: [{port: 80, name: a}, {port: 80, name: b}]}}",
        'spec.ports[1]: Duplicate value: {"protocol":"TCP","port":80}',
    ),
    (
        kinds.SERVICE,
        "{spec: {ports: [{port: 80, name: A}]}}",
        'spec.ports[0].name: Invalid value: "A": a lowercase',
    ),
    (
        kinds.SERVICE,
        "{spec: {ports: [{port: 99999, targetPort: 1}]}}",
        "spec.ports[0].port: Invalid value: 99999: must be between 1 and 65535, inclusive",
    ),
    (
        kinds.SERVICE,
        "{spec: {ports: [{port: 80, targetPort: -1}]}}",
        "spec.ports[0].targetPort: Invalid value: -1",
    ),
    (
        kinds.SERVICE,
        "{spec: {type: NodePort, ports: [{port: 80, nodePort: 80}]}}",
        "spec.ports[0].nodePort: Invalid value: 80: provided port is not in the valid range. The range "
        "of valid "
        "ports is 30000-32767",
    ),
    (
        kinds.SERVICE,
        "{spec: {ports: [{port: 80, nodePort: 30080}]}}",
        "spec.ports[0].nodePort: Forbidden: may not be used when `type` is 'ClusterIP'",
    ),
    (kinds.SERVICE, "{spec: {type: ExternalName}}", "spec.externalName: Required value"),
    (
        kinds.SERVICE,
        "{spec: {clusterIP: here, ports: [{port: 80}]}}",
        'spec.clusterIPs[0]: Invalid value: "here": must',
    ),
    (
        kinds.SERVICE,
        "{spec: {type: NodePort, clusterIP: None, ports: [{port: 80}]}}",
        "spec.clusterIPs[0]: Invalid value: \"None\": may not be set to 'None' for NodePort services",
    ),
    (
        kinds.SERVICE,
        "{spec: {sessionAffinity: X, ports: [{port: 80}]}}",
        'spec.sessionAffinity: Unsupported value: "X"',
    ),
    (
        kinds.SERVICE,
        "{spec: {selector: {a: b c}, ports: [{port: 80}]}}",
        'spec.selector: Invalid value: "b c"',
    ),
    (
        kinds.SERVICE,
        "{spec: {externalIPs: [x], ports: [{port: 80}]}}",
        'spec.externalIPs[0]: Invalid value: "x"',
    ),
    (
        kinds.ENDPOINTS,
        "{subsets: [{ports: [{port: 80}]}]}",
        "subsets[0]: Required value: must specify `addresses` or",
    ),
    (
        kinds.ENDPOINTS,
        "{subsets: [{addresses: [{ip: x}]}]}",
        'subsets[0].addresses[0].ip: Invalid value: "x": must be',
    ),
    (kinds.ENDPOINT_SLICE, "{}", "addressType: Required value"),
    (
        kinds.ENDPOINT_SLICE,
        "{addressType: IPv5}",
        'addressType: Unsupported value: "IPv5": supported values: "FQDN"',
    ),
    (
        kinds.ENDPOINT_SLICE,
        "{addressType: IPv4, endpoints: [{}]}",
        "endpoints[0].addresses: Required value: must contain at least 1 address",
    ),
    (
        kinds.CONFIG_MAP,
        "{data: {a b: c}}",
        'data[a b]: Invalid value: "a b": a valid config key must consist of',
    ),
    (
        kinds.PERSISTENT_VOLUME_CLAIM,
        "{spec: {resources: {requests: {storage: 1}}}}",
        "spec.accessModes: Required value: at least 1 access mode is required",
    ),
    (
        kinds.PERSISTENT_VOLUME_CLAIM,
        "{spec: {accessModes: [ReadOften], resources: {requests: {storage: 1}}}}",
        'spec.accessModes: Unsupported value: "ReadOften": supported values: "ReadOnlyMany"',
    ),
    (
        kinds.PERSISTENT_VOLUME_CLAIM,
        "{spec: {accessModes: [ReadWriteMany]}}",
        "spec.resources[storage]: Required value",
    ),
    (kinds.CONFIG_MAP, "{data: {..: c}}", "data[..]: Invalid value: \"..\": must not start with '..'"),
    (kinds.CONFIG_MAP, "{data: {.: c}}", "data[.]: Invalid value: \".\": must not be '.'"),
    (
        kinds.CONFIG_MAP,
        "{data: {a: b}, binaryData: {a: AA==}}",
        'data[a]: Invalid value: "a": duplicate of key present',
    ),
    (
        kinds.SECRET,
        "{data: {a: '***'}}",
        'data[a]: Invalid value: "<secret contents redacted>": illegal base64 data',
    ),
    (kinds.SECRET, "{type: kubernetes.io/tls, data: {tls.crt: ''}}", "data[tls.key]: Required value"),
    (kinds.SECRET, "{type: kubernetes.io/ssh-auth}", "data[ssh-privatekey]: Required value"),
    (
        kinds.SECRET,
        "{type: kubernetes.io/dockercfg, stringData: {.dockercfg: '{'}}",
        "data[.dockercfg]: Invalid value",
    ),
    (
        kinds.SECRET,
        "{type: kubernetes.io/service-account-token}",
        "metadata.annotations[kubernetes.io/service-account.name]: Required value",
    ),
    (
        kinds.RESOURCE_QUOTA,
        "{spec: {hard: {apples: 5}}}",
        'spec.hard[apples]: Invalid value: "apples": must be a standard',
    ),
    (
        kinds.RESOURCE_QUOTA,
        "{spec: {hard: {pods: 500m}}}",
        'spec.hard[pods]: Invalid value: "500m": must be an integer',
    ),
    (
        kinds.RESOURCE_QUOTA,
        "{spec: {hard: {pods: -1}}}",
        'spec.hard[pods]: Invalid value: "-1": must be greater than',
    ),
    (
        kinds.RESOURCE_QUOTA,
        "{spec: {hard: {requests.nvidia.com/gpu: 500m}}}",
        'spec.hard[requests.nvidia.com/gpu]: Invalid value: "500m": must be an integer',
    ),
    (kinds.LIMIT_RANGE, "{spec: {limits: [{max: {cpu: 1}}]}}", "spec.limits[0].type: Required value"),
    (
        kinds.LIMIT_RANGE,
        "{spec: {limits: [{type: Pod, min: {cpu: 2}, max: {cpu: 1}}]}}",
        'spec.limits[0].min[cpu]: Invalid value: "2": min value 2 is greater than max value 1',
    ),
    (
        kinds.LIMIT_RANGE,
        "{spec: {limits: [{type: Container, min: {cpu: 2}, default: {cpu: 3}, defaultRequest: {cpu: 1}}]}}",
        'spec.limits[0].defaultRequest[cpu]: Invalid value: "1": min value 2 is greater than default '
        "request value 1",
    ),
    (
        kinds.LIMIT_RANGE,
        "{spec: {limits: [{type: Pod}, {type: Pod}]}}",
        'spec.limits[1].type: Duplicate value: "Pod"',
    ),
    (
        kinds.LIMIT_RANGE,
        "{spec: {limits: [{type: Pod, default: {cpu: 1}}]}}",
        "spec.limits[0].default: Forbidden: may not be specified when `type` is 'Pod'",
    ),
    (
        kinds.POD_DISRUPTION_BUDGET,
        "{spec: {minAvailable: 1, maxUnavailable: 1}}",
        'spec: Invalid value: {"minAvailable":1,"maxUnavailable":1}: minAvailable and maxUnavailable '
        "cannot be both set",
    ),
    (
        kinds.POD_DISRUPTION_BUDGET,
        "{spec: {minAvailable: most}}",
        'spec.minAvailable: Invalid value: "most": a valid',
    ),
    (
        kinds.ROLE,
        "{rules: [{apiGroups: [''], resources: [pods]}]}",
        "rules[0].verbs: Required value: verbs must contain",
    ),
    (
        kinds.ROLE,
        "{rules: [{resources: [pods], verbs: [get]}]}",
        "rules[0].apiGroups: Required value: resource rules",
    ),
    (
        kinds.ROLE,
        "{rules: [{apiGroups: [''], verbs: [get]}]}",
        "rules[0].resources: Required value: resource rules must",
    ),
    (
        kinds.ROLE,
        "{rules: [{nonResourceURLs: [/metrics], verbs: [get]}]}",
        'rules[0].nonResourceURLs: Invalid value: ["/metrics"]: namespaced rules cannot apply to '
        "non-resource URLs",
    ),
    (
        kinds.ROLE_BINDING,
        "{roleRef: {kind: Job, name: r}}",
        'roleRef.kind: Unsupported value: "Job": supported values: "Role", "ClusterRole"',
    ),
    (kinds.ROLE_BINDING, "{roleRef: {kind: Role}}", "roleRef.name: Required value"),
    (
        kinds.ROLE_BINDING,
        "{roleRef: {kind: Role, name: r, apiGroup: apps}}",
        'roleRef.apiGroup: Unsupported value: "apps": supported values: "rbac.authorization.k8s.io"',
    ),
    (
        kinds.ROLE_BINDING,
        "{roleRef: {kind: Role, name: r}, subjects: [{kind: ServiceAccount, name: s}]}",
        "subjects[0].namespace: Required value",
    ),
    (
        kinds.ROLE_BINDING,
        "{roleRef: {kind: Role, name: r}, subjects: [{kind: Robot, name: s}]}",
        'subjects[0].kind: Unsupported value: "Robot": supported values: "ServiceAccount", "User", "Group"',
    ),
    (
        kinds.ROLE_BINDING,
        "{roleRef: {kind: Role, name: r}, subjects: [{kind: User}]}",
        "subjects[0].name: Required value",
    ),
    (
        kinds.ROLE_BINDING,
        "{roleRef: {kind: Role, name: r}, subjects: [{kind: User, name: a, apiGroup: x}]}",
        'subjects[0].apiGroup: Unsupported value: "x": supported values: "rbac.authorization.k8s.io"',
    ),
    (
        kinds.INGRESS,
        "{spec: {}}",
        "spec: Invalid value: {}: either `defaultBackend` or `rules` must be specified",
    ),
    (
        kinds.INGRESS,
        RULE % "{}",
        "spec.rules[0].http.paths[0].backend: Required value: resource or service backend is",
    ),
    (
        kinds.INGRESS,
        RULE % "{service: {name: web}}",
        "spec.rules[0].http.paths[0].backend: Required value: port name",
    ),
    (
        kinds.INGRESS,
        RULE.replace("pathType: Prefix, ", "") % WEB,
        "spec.rules[0].http.paths[0].pathType: Required value: pathType must be specified",
    ),
    (
        kinds.INGRESS,
        RULE.replace("/,", "a,") % WEB,
        'paths[0].path: Invalid value: "a": must be an absolute path',
    ),
    (
        kinds.INGRESS,
        RULE.replace("*.example", "*a") % WEB,
        'spec.rules[0].host: Invalid value: "*a.org": a wildcard',
    ),
    (
        kinds.NETWORK_POLICY,
        "{spec: {policyTypes: [Both]}}",
        'spec.policyTypes[0]: Unsupported value: "Both": supported',
    ),
    (
        kinds.NETWORK_POLICY,
        "{spec: {ingress: [{from: [{}]}]}}",
        "spec.ingress[0].from[0]: Required value: must specify",
    ),
    (
        kinds.NETWORK_POLICY,
        "{spec: {egress: [{to: [{ipBlock: {cidr: all}}]}]}}",
        'spec.egress[0].to[0].ipBlock.cidr: Invalid value: "all": must be a valid CIDR value',
    ),
    (
        kinds.NETWORK_POLICY,
        "{spec: {egress: [{to: [{podSelector: {}, ipBlock: {cidr: 10.0.0.0/8}}]}]}}",
        "spec.egress[0].to[0]: Forbidden: may not specify both ipBlock and another peer",
    ),
    (
        kinds.LEASE,
        "{spec: {leaseDurationSeconds: 0}}",
        "spec.leaseDurationSeconds: Invalid value: 0: must be greater",
    ),
    (
        kinds.EVENT,
        "{involvedObject: {namespace: other}}",
        'involvedObject.namespace: Invalid value: "other": does not match event.namespace',
    ),
    (
        kinds.CONTROLLER_REVISION,
        "{revision: -1}",
        "revision: Invalid value: -1: must be greater than or equal to 0",
    ),
]


@pytest.mark.parametrize(
    ("kind", "text", "expected"), WRONG, ids=[f"{i}-{c[0].kind}" for i, c in enumerate(WRONG)]
)
def test_what_is_wrong(kind: Kind, text: str, expected: str) -> None:
    (said,) = said_of(kind, named(**load(text)))
    assert expected in said


def test_basic_authentication_needs_either() -> None:
    assert said_of(kinds.SECRET, named(type="kubernetes.io/basic-auth")) == [
        "data[username]: Required value",
        "data[password]: Required value",
    ]


def test_a_mebibyte_fits() -> None:
    full = "x" * 1024 * 1024
    assert said_of(kinds.CONFIG_MAP, named(data={"a": full})) == []
    assert said_of(kinds.SECRET, named(stringData={"a": full})) == []
    too_long = "Too long: may not be more than 1048576 bytes"
    assert said_of(kinds.CONFIG_MAP, named(data={"a": full, "b": "x"})) == [f": {too_long}"]
    more = base64.b64encode(b"x").decode()
    assert said_of(kinds.CONFIG_MAP, named(data={"a": full}, binaryData={"b": more})) == [f": {too_long}"]
    assert said_of(kinds.SECRET, named(stringData={"a": full}, data={"b": more})) == [f"data: {too_long}"]


def crd(name: str = "trainers.example.org", **spec: object) -> Object:
    """A CustomResourceDefinition, whose spec differs in some fields."""
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": {"type": "object"}},
        "additionalPrinterColumns": [load(COLUMN)],
    }
    names = {"kind": "Trainer", "plural": "trainers", "shortNames": ["tr"]}
    given = {"group": "example.org", "scope": "Namespaced", "names": names, "versions": [version]}
    return of_cluster(name, spec={**given, **spec})


OBJECT = "{openAPIV3Schema: {type: object}}"


def test_a_definition_is_fine() -> None:
    assert said_of(kinds.CRD, crd()) == []


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        (
            "{group: example.com}",
            ['metadata.name: Invalid value: "trainers.example.org": must be spec.names.plural+"."+'],
        ),
        ("{scope: ''}", ['spec.scope: Unsupported value: "": supported values: "Cluster", "Namespaced"']),
        (
            "{versions: []}",
            ["spec.versions: Invalid value: []: must have exactly one version marked as storage version"],
        ),
        (
            f"{{versions: [{{name: v1, storage: true, schema: {OBJECT}}}, {{name: v2, storage: true, "
            f"schema: {OBJECT}}}]}}",
            [
                'spec.versions: Invalid value: ["v1","v2"]: must have exactly one version marked as '
                "storage version"
            ],
        ),
        (
            f"{{versions: [{{name: v1, storage: true, schema: {OBJECT}}}, {{name: v1, schema: {OBJECT}}}]}}",
            ['spec.versions: Invalid value: ["v1","v1"]: must contain unique version names'],
        ),
        (
            "{versions: [{name: v1, storage: true}]}",
            ["spec.versions[0].schema.openAPIV3Schema: Required value: schemas are required"],
        ),
        (
            "{versions: [{name: v1, storage: true, schema: {openAPIV3Schema: {}}}]}",
            ["spec.versions[0].schema.openAPIV3Schema.type: Required value: must not be empty at the root"],
        ),
        (
            "{versions: [{name: v1, storage: true, schema: {openAPIV3Schema: {type: array}}}]}",
            [
                'spec.versions[0].schema.openAPIV3Schema.type: Invalid value: "array": must be object '
                "at the root"
            ],
        ),
        (
            f"{{versions: [{{name: V_1, storage: true, schema: {OBJECT}}}]}}",
            ['spec.versions[0].name: Invalid value: "V_1": a DNS-1035 label must consist of'],
        ),
        (
            f"{{versions: [{{name: v1, storage: true, schema: {OBJECT}, additionalPrinterColumns: "
            f"[{{type: x}}]}}]}}",
            [
                "spec.versions[0].additionalPrinterColumns[0].name: Required value",
                "spec.versions[0].additionalPrinterColumns[0].jsonPath: Required value",
                'spec.versions[0].additionalPrinterColumns[0].type: Unsupported value: "x": supported '
                'values: "boolean"',
            ],
        ),
        (
            "{names: {kind: Trainer, plural: trainers, listKind: Trainer}}",
            ['spec.names.listKind: Invalid value: "Trainer": kind and listKind may not be the same'],
        ),
        (
            "{names: {plural: trainers}}",
            [f"spec.names.{key}: Required value" for key in ("singular", "kind", "listKind")],
        ),
        (
            "{names: {kind: Trainer, plural: trainers, shortNames: [T_1]}}",
            ['spec.names.shortNames[0]: Invalid value: "T_1": a DNS-1035 label must'],
        ),
    ],
)
def test_definitions(spec: str, expected: list[str]) -> None:
    for said, start in zip(said_of(kinds.CRD, crd(**load(spec))), expected, strict=True):
        assert said.startswith(start)


def test_the_group_of_a_definition_is_a_domain() -> None:
    (said,) = said_of(kinds.CRD, crd("trainers.example", group="example"))
    assert said == 'spec.group: Invalid value: "example": should be a domain with at least one dot'


@pytest.mark.parametrize(
    ("kind", "obj", "expected"),
    [
        (kinds.PRIORITY_CLASS, of_cluster("high", value=1_000_000_000), ""),
        (
            kinds.PRIORITY_CLASS,
            of_cluster("high", value=1_000_000_001),
            "value: Forbidden: maximum allowed value of a user defined priority is 1000000000",
        ),
        (
            kinds.PRIORITY_CLASS,
            of_cluster("system-mine"),
            "metadata.name: Forbidden: priority class names with 'system-' prefix are reserved for "
            "system use only",
        ),
        (kinds.PRIORITY_CLASS, of_cluster("system-node-critical", value=2_000_001_000), ""),
        (
            kinds.PRIORITY_CLASS,
            of_cluster("p", preemptionPolicy="X"),
            'preemptionPolicy: Unsupported value: "X"',
        ),
        (kinds.RUNTIME_CLASS, of_cluster("nvidia", handler="nvidia"), ""),
        (kinds.RUNTIME_CLASS, of_cluster("nvidia"), 'handler: Invalid value: "": a lowercase RFC 1123 label'),
        (
            kinds.CLUSTER_ROLE,
            of_cluster("r", rules=[{"nonResourceURLs": ["/metrics"], "verbs": ["get"]}], aggregationRule={}),
            "aggregationRule.clusterRoleSelectors: Required value: at least one clusterRoleSelector required",
        ),
        (
            kinds.CLUSTER_ROLE,
            of_cluster("r", rules=[{"nonResourceURLs": ["/"], "resources": ["pods"], "verbs": ["get"]}]),
            'rules[0].nonResourceURLs: Invalid value: ["/"]: rules cannot apply to both regular '
            "resources and",
        ),
        (
            kinds.CLUSTER_ROLE_BINDING,
            of_cluster("b", roleRef={"kind": "Role", "name": "r"}),
            'roleRef.kind: Unsupported value: "Role": supported values: "ClusterRole"',
        ),
        (
            kinds.NAMESPACE,
            of_cluster("team", spec={"finalizers": ["mine"]}),
            'spec.finalizers[0]: Invalid value: "mine": name is neither a standard finalizer name nor '
            "is it fully",
        ),
        (
            kinds.NODE,
            of_cluster(
                "n", spec=load("{taints: [{key: a, effect: NoSchedule}, {key: a, effect: NoExecute}]}")
            ),
            "",
        ),
        (
            kinds.NODE,
            of_cluster(
                "n",
                spec=load("{taints: [{key: a, effect: NoSchedule}, {key: a, value: b, effect: NoSchedule}]}"),
            ),
            'metadata.taints[1]: Duplicate value: {"key":"a","value":"b","effect":"NoSchedule"}',
        ),
        (
            kinds.NODE,
            of_cluster("n", spec=load("{taints: [{key: a, effect: Never}]}")),
            'metadata.taints[0].effect: Unsupported value: "Never": supported values: "NoSchedule", '
            '"PreferNoSchedule"',
        ),
        (
            kinds.NODE,
            of_cluster("n", spec=load("{taints: [{key: a b, effect: NoSchedule}]}")),
            'metadata.taints[0].key: Invalid value: "a b": name part must consist of',
        ),
    ],
)
def test_kinds_of_the_whole_cluster(kind: Kind, obj: Object, expected: str) -> None:
    said = said_of(kind, obj)
    assert len(said) == (1 if expected else 0)
    assert "".join(said).startswith(expected)


def test_an_event_about_the_whole_cluster_is_in_default() -> None:
    about = {"kind": "Node", "name": "n"}
    assert said_of(kinds.EVENT, named(namespace="default", involvedObject=about)) == []
    assert len(said_of(kinds.EVENT, named(namespace="team", involvedObject=about))) == 1
