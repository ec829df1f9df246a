"""kubectl explain, which reads the OpenAPI documents: each kind that is served, fields, a CRD's kind."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from own_cluster import Client

pytestmark = pytest.mark.real
CRD = """\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: waves.explain.test.gpuworkshop.io}
spec:
  group: explain.test.gpuworkshop.io
  names: {kind: Wave, plural: waves, shortNames: [wv]}
  scope: Namespaced
  versions:
    - name: v1
      served: true
      storage: true
      schema:
        openAPIV3Schema:
          type: object
          description: A load that comes and goes.
          properties:
            spec:
              type: object
              required: [period]
              properties:
                period: {type: integer, description: Seconds from one rise to the next.}
                steps: {type: array, items: {type: object, properties: {percent: {type: integer}}}}
"""


@pytest.fixture
def waves(client: Client) -> Iterator[str]:
    """A kind of a CRD."""
    client.apply(CRD)
    client.kubectl("wait", "crd", "waves.explain.test.gpuworkshop.io", "--for=condition=Established")
    yield "wave"
    client.kubectl("delete", "crd", "waves.explain.test.gpuworkshop.io")


def test_every_kind_is_explained(client: Client) -> None:
    lines = client.kubectl("api-resources", "--no-headers").splitlines()
    assert len(lines) > 30
    for line in lines:
        plural, *_, version, _, kind = line.split()
        said = client.kubectl("explain", plural, f"--api-version={version}")
        assert f"KIND:       {kind}\n" in said
        assert f"VERSION:    {version.rpartition('/')[2]}\n" in said
        assert "metadata\t<ObjectMeta>" in said


@pytest.mark.parametrize(
    ("path", "says"),
    [
        ("pods.spec.containers.resources.limits", "FIELD: limits <map[string]Quantity>"),
        ("deployment.spec.strategy.rollingUpdate.maxSurge", "FIELD: maxSurge <IntOrString>"),
        ("ds.spec.template.spec.tolerations", "FIELD: tolerations <[]Toleration>"),
        ("node.status.allocatable", "FIELD: allocatable <map[string]Quantity>"),
        ("secret.stringData", "FIELD: stringData <map[string]string>"),
        ("networkpolicy.spec.ingress.from.podSelector", "FIELD: podSelector <LabelSelector>"),
    ],
)
def test_a_field(client: Client, path: str, says: str) -> None:
    assert says in client.kubectl("explain", path)


def test_a_tree_of_fields(client: Client) -> None:
    said = client.kubectl("explain", "pod.spec.volumes", "--recursive")
    assert "configMap\t<ConfigMapVolumeSource>" in said
    assert "  fieldPath\t<string>" in said


def test_what_cannot_be_explained(client: Client) -> None:
    assert 'field "replicaz" does not exist' in client.refused("explain", "deployment.spec.replicaz")
    assert "doesn't have a resource type" in client.refused("explain", "horizontalpodautoscalers")


def test_a_kind_of_a_crd(client: Client, waves: str) -> None:
    said = client.kubectl("explain", waves)
    assert "A load that comes and goes." in said
    assert "GROUP:      explain.test.gpuworkshop.io" in said
    assert "period\t<integer> -required-" in client.kubectl("explain", f"{waves}.spec")
    assert "Seconds from one rise to the next." in client.kubectl("explain", "wv.spec.period")
    assert "FIELD: percent <integer>" in client.kubectl("explain", "waves.spec.steps.percent")
    client.apply(CRD.replace("A load that comes and goes.", "Now it says something else."))
    assert "Now it says something else." in client.kubectl("explain", waves)
