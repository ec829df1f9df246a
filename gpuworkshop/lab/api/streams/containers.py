"""Which container of a pod is meant, and whether anything can be asked of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gpuworkshop.lab.api.objects import Object, annotations_of, name_of
from gpuworkshop.lab.api.problems import ApiError, bad_request

DEFAULT_CONTAINER = "kubectl.kubernetes.io/default-container"


def named(pod: Object, name: str) -> str:
    """The container that was asked for; ApiError 400 where the pod has none of that name."""
    if name not in [*_names(pod, "containers"), *_names(pod, "initContainers")]:
        raise bad_request(f"container {name} is not valid for pod {name_of(pod)}")
    return name


def default(pod: Object) -> str:
    """The container that is meant where none is named: the annotated one, else the first."""
    names = _names(pod, "containers")
    annotated = annotations_of(pod).get(DEFAULT_CONTAINER, "")
    return annotated if annotated in names else names[0]


def only(pod: Object) -> str:
    """The pod's only container; ApiError 400 with the choice where there are several."""
    names, init = _names(pod, "containers"), _names(pod, "initContainers")
    if len(names) == 1:
        return names[0]
    message = f"a container name must be specified for pod {name_of(pod)}, choose one of: [{' '.join(names)}]"
    if init:
        message += f" or one of the init containers: [{' '.join(init)}]"
    raise bad_request(message)


def check_assigned(pod: Object) -> None:
    """ApiError 400 where no node has the pod yet."""
    if not pod["spec"].get("nodeName"):
        raise bad_request(f"pod {name_of(pod)} does not have a host assigned")


def check_running(pod: Object, container: str) -> None:
    """ApiError 500 where the pod's status says that the container does not run."""
    state = _state(pod, container)
    if state is not None and "running" not in state:
        raise ApiError(500, "InternalError", f'container not found ("{container}")')


def _names(pod: Object, field: str) -> list[str]:
    return [container["name"] for container in pod["spec"].get(field) or []]


def _state(pod: Object, container: str) -> Mapping[str, Any] | None:
    status = pod.get("status") or {}
    every = [*(status.get("containerStatuses") or []), *(status.get("initContainerStatuses") or [])]
    return next((found.get("state") or {} for found in every if found["name"] == container), None)
