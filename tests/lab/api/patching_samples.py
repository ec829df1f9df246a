"""Objects and strategies that the tests of the patches share."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from gpuworkshop.lab.api.objects import Object

DEPLOYMENT_MESSAGE = "k8s.io.api.apps.v1.Deployment"
POD_MESSAGE = "k8s.io.api.core.v1.Pod"
CONFIG_MAP_MESSAGE = "k8s.io.api.core.v1.ConfigMap"
NOW = 1_700_000_000.0
LATER = NOW + 60

NAMES = st.sampled_from(["a", "b", "c"])
SCALARS = st.one_of(st.integers(2, 5), st.sampled_from(["x", "y"]))
JSON = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=12,
)
MAPPINGS = st.dictionaries(NAMES, JSON, max_size=3)


def config_map(**data: str) -> Object:
    found: Object = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "settings", "namespace": "x"},
    }
    return {**found, "data": data} if data else found


def container(name: str = "web", image: str = "nginx:1.27", **more: Any) -> Object:
    return {"name": name, "image": image, **more}


def deployment(*containers: Object, **spec: Any) -> Object:
    template = {
        "metadata": {"labels": {"app": "web"}},
        "spec": {"containers": list(containers or [container()])},
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "x"},
        "spec": {"selector": {"matchLabels": {"app": "web"}}, "template": template, **spec},
    }


def pod_spec(obj: Object) -> Object:
    """The spec of a workload's pods."""
    found: Object = obj["spec"]["template"]["spec"]
    return found


def _container(
    name: str, image: str, env: dict[str, str], ports: list[int], limits: dict[str, str]
) -> Object:
    found = container(name, image)
    if env:
        found["env"] = [{"name": key, "value": value} for key, value in env.items()]
    if ports:
        found["ports"] = [{"containerPort": port} for port in ports]
    if limits:
        found["resources"] = {"limits": limits}
    return found


VALUES = st.sampled_from(["1", "2"])
CONTAINERS = st.builds(
    _container,
    NAMES,
    st.sampled_from(["nginx:1.27", "nginx:1.28"]),
    st.dictionaries(NAMES, VALUES, max_size=3),
    st.lists(st.sampled_from([80, 443]), unique=True),
    st.dictionaries(st.sampled_from(["cpu", "memory"]), VALUES),
)


@st.composite
def deployments(draw: st.DrawFn) -> Object:
    containers = draw(
        st.lists(CONTAINERS, min_size=1, max_size=3, unique_by=lambda found: str(found["name"]))
    )
    obj = deployment(*containers, **draw(st.fixed_dictionaries({}, optional={"replicas": st.integers(1, 3)})))
    if labels := draw(st.dictionaries(NAMES, VALUES, max_size=2)):
        obj["metadata"]["labels"] = labels
    return obj
