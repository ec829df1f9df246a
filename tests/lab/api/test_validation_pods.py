from __future__ import annotations

from typing import Any

import pytest
from defaulted_samples import defaulted, load, pod, said_of, with_container

from gpuworkshop.lab.api.kinds import POD
from gpuworkshop.lab.api.problems import invalid
from gpuworkshop.lab.api.validation import validate_create

AT = "spec.containers[0]"
GPU = "nvidia.com/gpu"
LABEL = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-'"

TRAINER = """
metadata:
  name: trainer
  namespace: team
  labels: {app.kubernetes.io/name: trainer}
  annotations: {gpuworkshop.io/load: wave}
spec:
  restartPolicy: OnFailure
  serviceAccountName: robot
  nodeSelector: {node.kubernetes.io/instance-type: g5.xlarge}
  tolerations:
    - {key: nvidia.com/gpu, operator: Exists, effect: NoSchedule}
    - {key: team, value: vision}
    - {operator: Exists, effect: NoExecute, tolerationSeconds: 60}
  affinity:
    nodeAffinity:
      requiredDuringSchedulingIgnoredDuringExecution:
        nodeSelectorTerms:
          - matchExpressions: [{key: gpu, operator: In, values: [t4]}, {key: n, operator: Gt, values: ['1']}]
          - matchFields: [{key: metadata.name, operator: In, values: [node-1]}]
      preferredDuringSchedulingIgnoredDuringExecution:
        - {weight: 1, preference: {matchExpressions: [{key: a, operator: Exists}]}}
    podAntiAffinity:
      requiredDuringSchedulingIgnoredDuringExecution:
        - {topologyKey: kubernetes.io/hostname, labelSelector: {matchLabels: {a: b}}}
  topologySpreadConstraints:
    - {maxSkew: 1, topologyKey: topology.kubernetes.io/zone, whenUnsatisfiable: DoNotSchedule}
  initContainers:
    - {name: fetch, image: 'busybox:1.36', command: [true]}
    - {name: proxy, image: 'envoy:1', restartPolicy: Always, readinessProbe: {tcpSocket: {port: 9000}}}
  containers:
    - name: trainer
      image: registry.example.org:5000/trainer:1
      ports: [{name: metrics, containerPort: 9400}, {name: dns, containerPort: 53, protocol: UDP}]
      resources: {limits: {nvidia.com/gpu: 1, cpu: 2, memory: 2Gi}, requests: {cpu: 500m}}
      env:
        - {name: POD, valueFrom: {fieldRef: {fieldPath: metadata.name}}}
        - {name: APP, valueFrom: {fieldRef: {fieldPath: "metadata.labels['app.kubernetes.io/name']"}}}
        - {name: CPUS, valueFrom: {resourceFieldRef: {resource: limits.cpu}}}
        - {name: KEY, valueFrom: {secretKeyRef: {name: s, key: token}}}
      envFrom: [{configMapRef: {name: settings}}, {prefix: S_, secretRef: {name: s}}]
      livenessProbe: {httpGet: {path: /healthz, port: metrics}, terminationGracePeriodSeconds: 5}
      startupProbe: {exec: {command: ['true']}}
      lifecycle: {preStop: {sleep: {seconds: 3}}}
      volumeMounts: [{name: data, mountPath: /data, subPath: a/b}, {name: settings, mountPath: /etc/settings}]
      securityContext: {runAsUser: 1000, privileged: false}
  volumes:
    - {name: data}
    - {name: settings, configMap: {name: settings, items: [{key: a, path: a.txt}]}}
    - {name: certificate, secret: {secretName: s, defaultMode: 256}}
    - {name: devices, hostPath: {path: /dev, type: Directory}}
    - {name: shared, emptyDir: {medium: Memory, sizeLimit: 1Gi}}
    - name: all
      projected:
        sources:
          - {serviceAccountToken: {path: token}}
          - {downwardAPI: {items: [{path: labels, fieldRef: {fieldPath: metadata.labels}}]}}
"""


def test_a_pod_that_uses_much_is_fine() -> None:
    assert said_of(POD, load(TRAINER)) == []


def said_of_container(**fields: Any) -> list[str]:
    """What is said to a pod whose only container has these fields."""
    return said_of(POD, with_container(**fields))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{name: ''}", f"{AT}.name: Required value"),
        ("{name: A_b}", f'{AT}.name: Invalid value: "A_b": {LABEL}'),
        ("{image: ''}", f"{AT}.image: Required value"),
        (
            "{image: ' nginx'}",
            f'{AT}.image: Invalid value: " nginx": must not have leading or trailing whitespace',
        ),
        (
            "{imagePullPolicy: Sometimes}",
            f'{AT}.imagePullPolicy: Unsupported value: "Sometimes": supported values: "Always", '
            '"IfNotPresent", "Never"',
        ),
        ("{terminationMessagePolicy: X}", f'{AT}.terminationMessagePolicy: Unsupported value: "X"'),
        ("{restartPolicy: Always}", f"{AT}.restartPolicy: Forbidden: may not be set for non-init containers"),
        ("{ports: [{protocol: TCP}]}", f"{AT}.ports[0].containerPort: Required value"),
        (
            "{ports: [{containerPort: 70000}]}",
            f"{AT}.ports[0].containerPort: Invalid value: 70000: must be between 1 and 65535, inclusive",
        ),
        (
            "{ports: [{containerPort: 80, hostPort: -1}]}",
            f"{AT}.ports[0].hostPort: Invalid value: -1: must be between",
        ),
        (
            "{ports: [{containerPort: 80, protocol: ICMP}]}",
            f'{AT}.ports[0].protocol: Unsupported value: "ICMP": supported values: "SCTP", "TCP", "UDP"',
        ),
        (
            "{ports: [{name: a, containerPort: 80}, {name: a, containerPort: 81}]}",
            f'{AT}.ports[1].name: Duplicate value: "a"',
        ),
        (
            "{ports: [{name: a-very-long-name-of-a-port, containerPort: 80}]}",
            f'{AT}.ports[0].name: Invalid value: "a-very-long-name-of-a-port": must be no more than 15 bytes',
        ),
        ("{ports: [{name: '80', containerPort: 80}]}", "must contain at least one letter (a-z)"),
        (
            "{ports: [{name: HTTP, containerPort: 80}]}",
            "must contain only alpha-numeric characters (a-z, 0-9), and hyphens",
        ),
        ("{ports: [{name: a--b, containerPort: 80}]}", "must not contain consecutive hyphens"),
        ("{ports: [{name: a-, containerPort: 80}]}", "must not begin or end with a hyphen"),
        ("{env: [{value: a}]}", f"{AT}.env[0].name: Required value"),
        (
            "{env: [{name: A=B}]}",
            f'{AT}.env[0].name: Invalid value: "A=B": a valid environment variable name must consist '
            "only of printable",
        ),
        (
            "{env: [{name: A, valueFrom: {}}]}",
            f'{AT}.env[0].valueFrom: Invalid value: "": must specify one of: `fieldRef`',
        ),
        (
            "{env: [{name: A, value: b, valueFrom: {fieldRef: {fieldPath: metadata.uid}}}]}",
            f'{AT}.env[0].valueFrom: Invalid value: "": may not be specified when `value` is not empty',
        ),
        (
            "{env: [{name: A, valueFrom: {fieldRef: {fieldPath: metadata.uid}, secretKeyRef: {key: a}}}]}",
            f'{AT}.env[0].valueFrom: Invalid value: "": may not have more than one field specified at a time',
        ),
        (
            "{env: [{name: A, valueFrom: {fieldRef: {fieldPath: spec.nodename}}}]}",
            f'{AT}.env[0].valueFrom.fieldRef.fieldPath: Unsupported value: "spec.nodename": supported '
            'values: "metadata.name"',
        ),
        (
            "{env: [{name: A, valueFrom: {fieldRef: {}}}]}",
            f"{AT}.env[0].valueFrom.fieldRef.fieldPath: Required value",
        ),
        (
            "{env: [{name: A, valueFrom: {resourceFieldRef: {resource: limits.gpu}}}]}",
            f'{AT}.env[0].valueFrom.resourceFieldRef.resource: Unsupported value: "limits.gpu"',
        ),
        (
            "{env: [{name: A, valueFrom: {resourceFieldRef: {}}}]}",
            f"{AT}.env[0].valueFrom.resourceFieldRef.resource: Required value",
        ),
        (
            "{env: [{name: A, valueFrom: {configMapKeyRef: {name: c}}}]}",
            f"{AT}.env[0].valueFrom.configMapKeyRef.key: Required value",
        ),
        (
            "{env: [{name: A, valueFrom: {secretKeyRef: {name: c, key: a b}}}]}",
            f'{AT}.env[0].valueFrom.secretKeyRef.key: Invalid value: "a b": a valid config key must '
            "consist of",
        ),
        (
            "{envFrom: [{}]}",
            f'{AT}.envFrom[0]: Invalid value: "": must specify one of: `configMapRef` or `secretRef`',
        ),
        ("{envFrom: [{configMapRef: {}}]}", f"{AT}.envFrom[0].configMapRef.name: Required value"),
        ("{envFrom: [{configMapRef: {name: C}}]}", f'{AT}.envFrom[0].configMapRef.name: Invalid value: "C"'),
        ("{volumeMounts: [{name: v, mountPath: /v}]}", f'{AT}.volumeMounts[0].name: Not found: "v"'),
        ("{livenessProbe: {}}", f"{AT}.livenessProbe: Required value: must specify a handler type"),
        (
            "{livenessProbe: {exec: {command: [a]}, tcpSocket: {port: 80}}}",
            f"{AT}.livenessProbe.tcpSocket: Forbidden: may not specify more than 1 handler type",
        ),
        ("{livenessProbe: {exec: {}}}", f"{AT}.livenessProbe.exec.command: Required value"),
        (
            "{livenessProbe: {tcpSocket: {port: 0}}}",
            f"{AT}.livenessProbe.tcpSocket.port: Invalid value: 0: must be between",
        ),
        (
            "{livenessProbe: {tcpSocket: {port: A}}}",
            f'{AT}.livenessProbe.tcpSocket.port: Invalid value: "A": must contain',
        ),
        (
            "{livenessProbe: {grpc: {port: a}}}",
            f'{AT}.livenessProbe.grpc.port: Invalid value: "a": must be between',
        ),
        (
            "{livenessProbe: {httpGet: {port: 80, scheme: FTP}}}",
            f'{AT}.livenessProbe.httpGet.scheme: Unsupported value: "FTP": supported values: "HTTP", "HTTPS"',
        ),
        (
            "{livenessProbe: {httpGet: {port: 80}, periodSeconds: -1}}",
            f"{AT}.livenessProbe.periodSeconds: Invalid value: -1: must be greater than or equal to 0",
        ),
        (
            "{livenessProbe: {httpGet: {port: 80}, successThreshold: 2}}",
            f"{AT}.livenessProbe.successThreshold: Invalid value: 2: must be 1",
        ),
        (
            "{readinessProbe: {httpGet: {port: 80}, terminationGracePeriodSeconds: 1}}",
            f"{AT}.readinessProbe.terminationGracePeriodSeconds: Invalid value: 1: must not be set for "
            "readinessProbes",
        ),
        (
            "{lifecycle: {postStart: {}}}",
            f"{AT}.lifecycle.postStart: Required value: must specify a handler type",
        ),
        (
            "{lifecycle: {preStop: {sleep: {seconds: -1}}}}",
            f"{AT}.lifecycle.preStop.sleep.seconds: Invalid value: -1",
        ),
        (
            "{securityContext: {runAsUser: -1}}",
            f"{AT}.securityContext.runAsUser: Invalid value: -1: must be between 0 and 2147483647, inclusive",
        ),
        (
            "{securityContext: {privileged: true, allowPrivilegeEscalation: false}}",
            "cannot set `allowPrivilegeEscalation` to false and `privileged` to true",
        ),
    ],
)
def test_containers(text: str, expected: str) -> None:
    (said,) = said_of_container(**load(text))
    assert expected in said


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{limits: {cpu: -1}}", ['limits[cpu]: Invalid value: "-1": must be greater than or equal to 0']),
        (
            "{limits: {cpu: one}}",
            ['limits[cpu]: Invalid value: "one": quantities must match the regular expression'],
        ),
        (
            "{limits: {cpu: 1}, requests: {cpu: 2}}",
            ['requests: Invalid value: "2": must be less than or equal to cpu limit of 1'],
        ),
        ("{limits: {nvidia.com/gpu: 0.5}}", [f'limits[{GPU}]: Invalid value: "500m": must be an integer']),
        (
            "{limits: {nvidia.com/gpu: 2}, requests: {nvidia.com/gpu: 1}}",
            [f'requests: Invalid value: "1": must be equal to {GPU} limit of 2'],
        ),
        (
            "{requests: {nvidia.com/gpu: 1}}",
            ["limits: Required value: Limit must be set for non overcommitable resources"],
        ),
        (
            "{requests: {hugepages-2Mi: 2Mi}}",
            ["limits: Required value: Limit must be set for non overcommitable"],
        ),
        (
            "{limits: {gpu: 1}}",
            [
                'limits[gpu]: Invalid value: "gpu": must be a standard resource type or fully qualified',
                'limits[gpu]: Invalid value: "gpu": must be a standard resource for containers',
            ],
        ),
        (
            "{limits: {nvidia.com/: 1}}",
            ['limits[nvidia.com/]: Invalid value: "nvidia.com/": name part must be'],
        ),
    ],
)
def test_resources(text: str, expected: list[str]) -> None:
    of_limits = [line for line in said_of_container(resources=load(text)) if "requests[" not in line]
    for line, start in zip(of_limits, expected, strict=True):
        assert line.startswith(f"{AT}.resources.{start}")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{containers: []}", "spec.containers: Required value"),
        (
            "{restartPolicy: Often}",
            'spec.restartPolicy: Unsupported value: "Often": supported values: "Always", "OnFailure", '
            '"Never"',
        ),
        ("{dnsPolicy: Mine}", 'spec.dnsPolicy: Unsupported value: "Mine": supported values: "ClusterFirst"'),
        (
            "{dnsPolicy: None}",
            "spec.dnsConfig.nameservers: Required value: must provide at least one DNS nameserver",
        ),
        (
            "{activeDeadlineSeconds: 0}",
            "spec.activeDeadlineSeconds: Invalid value: 0: must be between 1 and 2147483647",
        ),
        (
            "{terminationGracePeriodSeconds: -1}",
            "spec.terminationGracePeriodSeconds: Invalid value: -1: must be greater",
        ),
        (
            "{serviceAccountName: Robot}",
            'spec.serviceAccountName: Invalid value: "Robot": a lowercase RFC 1123 subdomain',
        ),
        ("{hostname: a.b}", f'spec.hostname: Invalid value: "a.b": {LABEL}'),
        (
            "{hostAliases: [{ip: here}]}",
            'spec.hostAliases[0].ip: Invalid value: "here": must be a valid IP address',
        ),
        (
            "{nodeSelector: {a: b c}}",
            'spec.nodeSelector: Invalid value: "b c": a valid label must be an empty string',
        ),
        (
            "{securityContext: {fsGroup: -5}}",
            "spec.securityContext.fsGroup: Invalid value: -5: must be between 0",
        ),
        ("{preemptionPolicy: X}", 'spec.preemptionPolicy: Unsupported value: "X"'),
        ("{volumes: [{emptyDir: {}}]}", "spec.volumes[0].name: Required value"),
        ("{volumes: [{name: V}]}", f'spec.volumes[0].name: Invalid value: "V": {LABEL}'),
        ("{volumes: [{name: v}, {name: v}]}", 'spec.volumes[1].name: Duplicate value: "v"'),
        (
            "{volumes: [{name: v, emptyDir: {}, hostPath: {path: /}}]}",
            "spec.volumes[0].hostPath: Forbidden: may not specify more than 1 volume type",
        ),
        ("{volumes: [{name: v, strange: 5}]}", "spec.volumes[0]: Required value: must specify a volume type"),
        ("{volumes: [{name: v, configMap: {}}]}", "spec.volumes[0].configMap.name: Required value"),
        ("{volumes: [{name: v, secret: {}}]}", "spec.volumes[0].secret.secretName: Required value"),
        (
            "{volumes: [{name: v, secret: {secretName: s, defaultMode: 777}}]}",
            "spec.volumes[0].secret.defaultMode: Invalid value: 777: must be a number between 0 and "
            "0777 (octal)",
        ),
        (
            "{volumes: [{name: v, persistentVolumeClaim: {}}]}",
            "spec.volumes[0].persistentVolumeClaim.claimName: Required",
        ),
        ("{volumes: [{name: v, hostPath: {}}]}", "spec.volumes[0].hostPath.path: Required value"),
        ("{volumes: [{name: v, hostPath: {path: /a/../b}}]}", "must not contain '..'"),
        (
            "{volumes: [{name: v, hostPath: {path: /a, type: X}}]}",
            'spec.volumes[0].hostPath.type: Unsupported value: "X"',
        ),
        (
            "{volumes: [{name: v, emptyDir: {sizeLimit: big}}]}",
            'spec.volumes[0].emptyDir.sizeLimit: Invalid value: "big"',
        ),
        (
            "{volumes: [{name: v, configMap: {name: c, items: [{path: a}]}}]}",
            "configMap.items[0].key: Required value",
        ),
        (
            "{volumes: [{name: v, configMap: {name: c, items: [{key: a, path: /a}]}}]}",
            'configMap.items[0].path: Invalid value: "/a": must be a relative path',
        ),
        (
            "{volumes: [{name: v, downwardAPI: {items: [{path: a}]}}]}",
            "downwardAPI.items[0]: Required value: one of fieldRef and resourceFieldRef is required",
        ),
        (
            "{volumes: [{name: v, projected: {sources: [{}]}}]}",
            "spec.volumes[0].projected.sources[0]: Required value",
        ),
        (
            "{volumes: [{name: v, projected: {sources: [{serviceAccountToken: {path: t, "
            "expirationSeconds: 5}}]}}]}",
            "expirationSeconds: Invalid value: 5: may not specify a duration less than 10 minutes",
        ),
        (
            "{tolerations: [{value: a}]}",
            'spec.tolerations[0].operator: Invalid value: "": operator must be Exists when `key` is empty',
        ),
        (
            "{tolerations: [{key: a, operator: Exists, value: b}]}",
            'spec.tolerations[0].operator: Invalid value: "b": value must be empty when `operator` is '
            "'Exists'",
        ),
        (
            "{tolerations: [{key: a, operator: Like}]}",
            'spec.tolerations[0].operator: Unsupported value: "Like": supported values: "Equal", "Exists"',
        ),
        (
            "{tolerations: [{key: a, effect: Never}]}",
            'spec.tolerations[0].effect: Unsupported value: "Never": supported values: "NoSchedule", '
            '"PreferNoSchedule"',
        ),
        (
            "{tolerations: [{key: a, effect: NoSchedule, tolerationSeconds: 5}]}",
            "effect must be 'NoExecute' when `tolerationSeconds` is set",
        ),
        (
            "{tolerations: [{key: a b}]}",
            'spec.tolerations[0].key: Invalid value: "a b": name part must consist of',
        ),
        (
            "{affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {}}}}",
            "nodeSelectorTerms: Required value: must have at least one node selector term",
        ),
        (
            "{affinity: {nodeAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{weight: 101}]}}}",
            "weight: Invalid value: 101: must be in the range 1-100",
        ),
        (
            "{affinity: {podAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{labelSelector: "
            "{}}]}}}",
            "topologyKey: Required value: can not be empty",
        ),
        (
            "{topologySpreadConstraints: [{maxSkew: 0, topologyKey: z, whenUnsatisfiable: DoNotSchedule}]}",
            "spec.topologySpreadConstraints[0].maxSkew: Invalid value: 0: must be greater than zero",
        ),
        (
            "{topologySpreadConstraints: [{maxSkew: 1, topologyKey: z, whenUnsatisfiable: Panic}]}",
            'whenUnsatisfiable: Unsupported value: "Panic": supported values: "DoNotSchedule", '
            '"ScheduleAnyway"',
        ),
    ],
)
def test_specs(text: str, expected: str) -> None:
    (said,) = said_of(POD, pod(**load(text)))
    assert expected in said


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        (
            "{key: a, operator: In}",
            "values: Required value: must be specified when `operator` is 'In' or 'NotIn'",
        ),
        (
            "{key: a, operator: Exists, values: [b]}",
            "values: Forbidden: may not be specified when `operator` is 'Exists'",
        ),
        ("{key: a, operator: Gt, values: []}", "values: Required value: must be specified single value when"),
        ("{key: a, operator: Near}", 'operator: Invalid value: "Near": not a valid selector operator'),
        ("{key: '', operator: Exists}", 'key: Invalid value: "": name part must be non-empty'),
    ],
)
def test_node_affinity(expression: str, expected: str) -> None:
    terms = {"nodeSelectorTerms": [{"matchExpressions": [load(expression)]}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
    (said,) = said_of(POD, pod(affinity=affinity))
    field = "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0]"
    assert said.startswith(f"{field}.matchExpressions[0].{expected}")


def test_names_are_unique_among_all_containers() -> None:
    twice = [{"name": "c", "image": "busybox:1"}]
    assert said_of(POD, pod(initContainers=twice)) == ['spec.containers[0].name: Duplicate value: "c"']


def test_what_runs_to_its_end_has_no_probes() -> None:
    probe = {"tcpSocket": {"port": 80}}
    first = [{"name": "i", "image": "busybox:1", "readinessProbe": probe}]
    why = "may not be set for init containers without restartPolicy=Always"
    assert said_of(POD, pod(initContainers=first)) == [
        f"spec.initContainers[0].readinessProbe: Forbidden: {why}"
    ]
    often = [{"name": "i", "image": "busybox:1", "restartPolicy": "OnFailure", "livenessProbe": None}]
    (said,) = said_of(POD, pod(initContainers=often))
    assert (
        said
        == 'spec.initContainers[0].restartPolicy: Unsupported value: "OnFailure": supported values: "Always"'
    )


def test_mounts_are_unique_and_stay_below() -> None:
    mounts = [
        {"name": "v", "mountPath": "/a"},
        {"name": "v", "mountPath": "/a", "subPath": "../b"},
        {"name": "v"},
    ]
    container = {"name": "c", "image": "nginx:1", "volumeMounts": mounts}
    assert said_of(POD, pod(volumes=[{"name": "v"}], containers=[container])) == [
        f'{AT}.volumeMounts[1].mountPath: Invalid value: "/a": must be unique',
        f"{AT}.volumeMounts[1].subPath: Invalid value: \"../b\": must not contain '..'",
        f"{AT}.volumeMounts[2].mountPath: Required value",
    ]


def test_ports_of_the_host_are_taken_once() -> None:
    ports = [{"containerPort": 80, "hostPort": 8080}, {"containerPort": 81, "hostPort": 8080}]
    assert said_of_container(ports=ports) == [f'{AT}.ports[1].hostPort: Duplicate value: "TCP//8080"']
    own = pod(hostNetwork=True, containers=[{"name": "c", "image": "nginx:1", "ports": ports[:1]}])
    why = "must match `containerPort` when `hostNetwork` is true"
    assert said_of(POD, own) == [f"{AT}.ports[0].hostPort: Invalid value: 8080: {why}"]


def test_the_status_that_a_client_gets() -> None:
    causes = validate_create(POD, defaulted(POD, with_container(image="", name="")))
    status = invalid(POD, "x", causes).status()
    assert status["message"] == (
        'Pod "x" is invalid: [spec.containers[0].name: Required value, spec.containers[0].image: '
        "Required value]"
    )
    assert status["details"]["causes"][0] == {
        "reason": "FieldValueRequired",
        "message": "Required value",
        "field": "spec.containers[0].name",
    }
