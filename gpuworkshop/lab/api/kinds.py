"""The kinds that the lab's API server serves: an allow-list, and a table to which CRDs add theirs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

LISTED = ("get", "list", "watch")
ALL_VERBS = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")


@dataclass(frozen=True)
class Kind:
    """One kind at one version, with the names under which it is asked for.

    `message` is its protobuf message in the Kubernetes sources, "" where its fields are not known. Reviews
    can only be created: they are answered, and never stored.
    """

    group: str
    version: str
    kind: str
    plural: str
    namespaced: bool = True
    short_names: tuple[str, ...] = ()
    subresources: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    message: str = ""
    verbs: tuple[str, ...] = ALL_VERBS

    @property
    def singular(self) -> str:
        """The singular name, as kubectl takes it."""
        return self.kind.lower()

    @property
    def api_version(self) -> str:
        """`v1`, or `group/version`."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def resource(self) -> str:
        """`pods`, or `deployments.apps`: the name in messages."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    @property
    def stored(self) -> bool:
        """Whether objects of this kind are kept; reviews are only answered."""
        return "get" in self.verbs


def _core(kind: str, plural: str, *short: str, **more: object) -> Kind:
    return _kind("", "v1", kind, plural, "k8s.io.api.core.v1", short, **more)


def _of(group: str, kind: str, plural: str, *short: str, **more: object) -> Kind:
    package = "k8s.io.api." + group.removesuffix(".k8s.io").split(".")[0] + ".v1"
    return _kind(group, "v1", kind, plural, package, short, **more)


def _kind(
    group: str, version: str, kind: str, plural: str, package: str, short: tuple[str, ...], **more: object
) -> Kind:
    return Kind(group, version, kind, plural, short_names=short, message=f"{package}.{kind}", **more)  # type: ignore[arg-type]


_ALL = {"categories": ("all",)}
_STATUS = {"subresources": ("status",)}
_SCALED = {**_ALL, "subresources": ("status", "scale")}
_WHOLE = {"namespaced": False}
_REVIEW = {"verbs": ("create",)}

NAMESPACE = _core(
    "Namespace",
    "namespaces",
    "ns",
    subresources=("status", "finalize"),
    verbs=tuple(verb for verb in ALL_VERBS if verb != "deletecollection"),
    **_WHOLE,
)
NODE = _core("Node", "nodes", "no", subresources=("status", "proxy"), **_WHOLE)
POD = _core(
    "Pod",
    "pods",
    "po",
    subresources=("status", "log", "exec", "attach", "portforward", "proxy", "eviction", "binding"),
    **_ALL,
)
SERVICE = _core("Service", "services", "svc", subresources=("status", "proxy"), **_ALL)
ENDPOINTS = _core("Endpoints", "endpoints", "ep")
CONFIG_MAP = _core("ConfigMap", "configmaps", "cm")
SECRET = _core("Secret", "secrets")
SERVICE_ACCOUNT = _core("ServiceAccount", "serviceaccounts", "sa", subresources=("token",))
EVENT = _core("Event", "events", "ev")
RESOURCE_QUOTA = _core("ResourceQuota", "resourcequotas", "quota", **_STATUS)
LIMIT_RANGE = _core("LimitRange", "limitranges", "limits")
PERSISTENT_VOLUME_CLAIM = _core("PersistentVolumeClaim", "persistentvolumeclaims", "pvc", **_STATUS)
PERSISTENT_VOLUME = _core("PersistentVolume", "persistentvolumes", "pv", **_WHOLE, **_STATUS)
# There are none, and none can be made; `kubectl apply --prune` lists them, and gives up where it cannot.
REPLICATION_CONTROLLER = Kind(
    "",
    "v1",
    "ReplicationController",
    "replicationcontrollers",
    short_names=("rc",),
    categories=("all",),
    verbs=LISTED,
)
CRON_JOB = Kind("batch", "v1", "CronJob", "cronjobs", short_names=("cj",), categories=("all",), verbs=LISTED)
DEPLOYMENT = _of("apps", "Deployment", "deployments", "deploy", **_SCALED)
REPLICA_SET = _of("apps", "ReplicaSet", "replicasets", "rs", **_SCALED)
DAEMON_SET = _of("apps", "DaemonSet", "daemonsets", "ds", categories=("all",), **_STATUS)
STATEFUL_SET = _of("apps", "StatefulSet", "statefulsets", "sts", **_SCALED)
CONTROLLER_REVISION = _of("apps", "ControllerRevision", "controllerrevisions")
JOB = _of("batch", "Job", "jobs", categories=("all",), **_STATUS)
ENDPOINT_SLICE = _of("discovery.k8s.io", "EndpointSlice", "endpointslices")
INGRESS = _of("networking.k8s.io", "Ingress", "ingresses", "ing", **_STATUS)
NETWORK_POLICY = _of("networking.k8s.io", "NetworkPolicy", "networkpolicies", "netpol")
POD_DISRUPTION_BUDGET = _of("policy", "PodDisruptionBudget", "poddisruptionbudgets", "pdb", **_STATUS)
PRIORITY_CLASS = _of("scheduling.k8s.io", "PriorityClass", "priorityclasses", "pc", **_WHOLE)
RUNTIME_CLASS = Kind("node.k8s.io", "v1", "RuntimeClass", "runtimeclasses", namespaced=False)
LEASE = _of("coordination.k8s.io", "Lease", "leases")
ROLE = _of("rbac.authorization.k8s.io", "Role", "roles")
ROLE_BINDING = _of("rbac.authorization.k8s.io", "RoleBinding", "rolebindings")
CLUSTER_ROLE = _of("rbac.authorization.k8s.io", "ClusterRole", "clusterroles", **_WHOLE)
CLUSTER_ROLE_BINDING = _of("rbac.authorization.k8s.io", "ClusterRoleBinding", "clusterrolebindings", **_WHOLE)
CRD = Kind(
    "apiextensions.k8s.io",
    "v1",
    "CustomResourceDefinition",
    "customresourcedefinitions",
    namespaced=False,
    short_names=("crd", "crds"),
    subresources=("status",),
    categories=("api-extensions",),
)
SELF_SUBJECT_ACCESS_REVIEW = _of(
    "authorization.k8s.io", "SelfSubjectAccessReview", "selfsubjectaccessreviews", **_WHOLE, **_REVIEW
)
SELF_SUBJECT_RULES_REVIEW = _of(
    "authorization.k8s.io", "SelfSubjectRulesReview", "selfsubjectrulesreviews", **_WHOLE, **_REVIEW
)
SUBJECT_ACCESS_REVIEW = _of(
    "authorization.k8s.io", "SubjectAccessReview", "subjectaccessreviews", **_WHOLE, **_REVIEW
)
LOCAL_SUBJECT_ACCESS_REVIEW = _of(
    "authorization.k8s.io", "LocalSubjectAccessReview", "localsubjectaccessreviews", **_REVIEW
)
SELF_SUBJECT_REVIEW = _of(
    "authentication.k8s.io", "SelfSubjectReview", "selfsubjectreviews", **_WHOLE, **_REVIEW
)
TOKEN_REVIEW = _of("authentication.k8s.io", "TokenReview", "tokenreviews", **_WHOLE, **_REVIEW)

BUILT_IN: tuple[Kind, ...] = tuple(found for found in list(globals().values()) if isinstance(found, Kind))


class KindTable:
    """The kinds that are served now: those built in, and those of the CRDs."""

    def __init__(self) -> None:
        self._by_resource = {(kind.group, kind.version, kind.plural): kind for kind in BUILT_IN}

    def __iter__(self) -> Iterator[Kind]:
        return iter(self._by_resource.values())

    def add(self, kind: Kind) -> None:
        """Serve a CRD's kind, or serve it as it is described now."""
        self._by_resource[kind.group, kind.version, kind.plural] = kind

    def discard(self, kind: Kind) -> None:
        """Serve a CRD's kind no longer."""
        self._by_resource.pop((kind.group, kind.version, kind.plural), None)

    def find(self, group: str, version: str, plural: str) -> Kind | None:
        """The kind that a path names."""
        return self._by_resource.get((group, version, plural))

    def of(self, api_version: str, kind: str) -> Kind | None:
        """The kind that an object names in `apiVersion` and `kind`."""
        return next((k for k in self if k.api_version == api_version and k.kind == kind), None)

    def groups(self) -> Iterable[str]:
        """Every API group but the core one, in the order of their first kind."""
        return dict.fromkeys(kind.group for kind in self if kind.group)
