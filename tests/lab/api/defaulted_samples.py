"""Objects as learners write them, and what the API would say to them."""

from __future__ import annotations

from typing import Any

import yaml

from gpuworkshop.lab.api.defaults import set_defaults
from gpuworkshop.lab.api.kinds import Kind
from gpuworkshop.lab.api.objects import Object, copy_of
from gpuworkshop.lab.api.problems import Cause
from gpuworkshop.lab.api.validation import validate_create, validate_update

UID = "7d0e8f5c-0000-4000-8000-000000000001"


def named(name: str = "x", namespace: str = "team", **more: Any) -> Object:
    """An object with metadata, as the registry prepares it."""
    return {"metadata": {"name": name, "namespace": namespace, "uid": UID}, **more}


def load(text: str) -> Any:
    """YAML, as short as can be."""
    return yaml.safe_load(text)


def defaulted(kind: Kind, obj: Object) -> Object:
    """A copy with its defaults."""
    new = copy_of(obj)
    set_defaults(kind, new)
    return new


def words(causes: list[Cause]) -> list[str]:
    """Each as the message shows it."""
    return [f"{cause.field}: {cause.message}" for cause in causes]


def said_of(kind: Kind, obj: Object) -> list[str]:
    """What is said to the creation of an object."""
    return words(validate_create(kind, defaulted(kind, obj)))


def said_of_change(kind: Kind, new: Object, old: Object) -> list[str]:
    """What is said to a change."""
    return words(validate_update(kind, defaulted(kind, new), defaulted(kind, old)))


def of_cluster(name: str, **more: Any) -> Object:
    """An object without a namespace."""
    return {"metadata": {"name": name, "uid": UID}, **more}


def pod(**spec: Any) -> Object:
    """A pod of one container."""
    return named(spec={"containers": [{"name": "c", "image": "nginx:1.27"}], **spec})


def with_container(**fields: Any) -> Object:
    """A pod whose only container differs in some fields."""
    return pod(containers=[{"name": "c", "image": "nginx:1.27", **fields}])


def workload(**spec: Any) -> Object:
    """The least that a Deployment, ReplicaSet, DaemonSet or StatefulSet can be."""
    template = {
        "metadata": {"labels": {"app": "x"}},
        "spec": {"containers": [{"name": "c", "image": "nginx:1.27"}]},
    }
    return named(spec={"selector": {"matchLabels": {"app": "x"}}, "template": template, **spec})


def job(**spec: Any) -> Object:
    """The least that a Job can be."""
    template = {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "busybox:1.36"}]}}
    return named(spec={"template": template, **spec})
