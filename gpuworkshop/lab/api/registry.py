"""What may be done with objects, and what that entails: names, defaults, validation, versions, deletion.

The HTTP server, the controllers and the kubelets all work through it. Like the store, it is synchronous:
no lock is needed, and a write is never half done.
"""

from __future__ import annotations

import secrets
import sqlite3
import time
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from gpuworkshop.lab.api import custom, deletion, problems
from gpuworkshop.lab.api.defaults import keep_allocated, set_defaults
from gpuworkshop.lab.api.events import Recorder
from gpuworkshop.lab.api.kinds import CRD, NAMESPACE, Kind, KindTable
from gpuworkshop.lab.api.listening import Changes
from gpuworkshop.lab.api.objects import (
    Object,
    copy_of,
    encoded,
    is_deleted,
    meta,
    name_of,
    namespace_of,
    timestamp,
)
from gpuworkshop.lab.api.patching.managed import track_update
from gpuworkshop.lab.api.replacing import WITHOUT_GENERATION, check_precondition, count_generation, merged
from gpuworkshop.lab.api.store import Stale, Store
from gpuworkshop.lab.api.validation import validate_create, validate_update

RANDOM_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"  # without vowels, so that no words come out
LONGEST_GENERATED = 58
LARGEST = 3 * 2**19  # what fits into one request to a real cluster's etcd
UNDYING = ("default", "kube-public", "kube-system")
# An admission step changes an object in place before it is stored, or refuses it by an ApiError.
Admission = Callable[["Registry", Kind, Object], None]


@dataclass(frozen=True)
class Write:
    """How a client writes: as which field manager ("" is not tracked), for real or as a dry run."""

    manager: str = ""
    dry_run: bool = False


PLAIN = Write()


class Registry:
    """The cluster's objects, under the rules of the API. Refusals are ApiErrors."""

    def __init__(
        self,
        store: Store,
        *,
        admission: Sequence[Admission] = (),
        update_admission: Sequence[Admission] = (),
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.store = store
        self.kinds = KindTable()
        self.admission, self.update_admission = list(admission), list(update_admission)
        self.now = clock
        self._recorder = Recorder(self)
        for crd in store.list(CRD.resource):
            custom.serve(self.kinds, crd)

    def find(self, kind: Kind, namespace: str, name: str) -> Object | None:
        """The object, or None."""
        return self.store.find(kind.resource, namespace if kind.namespaced else "", name)

    def get(self, kind: Kind, namespace: str, name: str) -> Object:
        """The object; NotFound if it is not there."""
        if (found := self.find(kind, namespace, name)) is None:
            raise problems.not_found(kind, name)
        return found

    def list(self, kind: Kind, namespace: str = "") -> list[Object]:
        """The objects of a namespace, or of all, in the order of namespace and name."""
        return self.store.list(kind.resource, namespace if kind.namespaced else "")

    def changes(self, *kinds: Kind) -> Changes:
        """What exists now as ADDED, then every change; of all kinds when none is named."""
        return Changes(self, kinds)

    def event(
        self, about: Object, kind: str, reason: str, message: str, component: str, host: str = ""
    ) -> None:
        """Record an Event about an object; one that repeats is counted."""
        self._recorder.record(about, kind, reason, message, component, host)

    def create(self, kind: Kind, obj: Object, how: Write = PLAIN) -> Object:
        """Create an object; with `generateName`, under a name of its own."""
        new = copy_of(obj)
        new["apiVersion"], new["kind"] = kind.api_version, kind.kind
        custom.check_creation(self, kind)
        self._prepare(kind, new)
        set_defaults(kind, new)
        custom.set_defaults(self, kind, new)
        if kind.namespaced:
            self._check_namespace(kind, new)
        # What admission adds is nobody's.
        new = self._track(kind, {}, new, how, "")
        for admit in self.admission:
            admit(self, kind, new)
        causes = [*validate_create(kind, new), *custom.validate(self, kind, new)]
        if causes:
            raise problems.invalid(kind, name_of(new), causes)
        if self.find(kind, namespace_of(new), name_of(new)) is not None:
            raise problems.already_exists(kind, name_of(new))
        return self._write(kind, new, None, how)

    def update(self, kind: Kind, obj: Object, subresource: str = "", how: Write = PLAIN) -> Object:
        """Replace what the (sub)resource covers; nothing is written when that changes nothing.

        With a resourceVersion in the object, only over that version: else Conflict.
        """
        live = self.get(kind, namespace_of(obj), name_of(obj))
        check_precondition(kind, live, meta(obj).get("uid"), meta(obj).get("resourceVersion"))
        new = merged(kind, live, obj, subresource)
        if not subresource:
            set_defaults(kind, new)
            custom.set_defaults(self, kind, new)
            keep_allocated(kind, new, live)
            for admit in self.update_admission:
                admit(self, kind, new)
        if subresource != "status":
            causes = [*validate_update(kind, new, live), *custom.validate(self, kind, new)]
            if causes:
                raise problems.invalid(kind, name_of(new), causes)
        count_generation(kind, live, new)
        if new == live or (new := self._track(kind, live, new, how, subresource)) == live:
            return live
        if is_deleted(new) and deletion.is_finished(kind, new) and not how.dry_run:
            return self._remove(kind, new)
        return self._write(kind, new, meta(live)["resourceVersion"], how)

    def modify(
        self,
        kind: Kind,
        namespace: str,
        name: str,
        change: Callable[[Object], None],
        subresource: str = "",
    ) -> Object | None:
        """Change a copy of the live object and write it back; None if there is none."""
        live = self.find(kind, namespace, name)
        if live is None:
            return None
        new = copy_of(live)
        change(new)
        return live if new == live else self.update(kind, new, subresource)

    def delete(
        self,
        kind: Kind,
        namespace: str,
        name: str,
        *,
        propagation: str = "Background",
        grace_period: int | None = None,
        uid: str = "",
        version: str = "",
        dry_run: bool = False,
    ) -> Object | None:
        """Delete an object, or begin to: it stays while finalizers or a grace period hold it.

        Returns its last state, None if it is not there.
        """
        live = self.find(kind, namespace, name)
        if live is None:
            return None
        check_precondition(kind, live, uid, version)
        if kind is NAMESPACE and name in UNDYING:
            raise problems.forbidden(kind, name, "this namespace may not be deleted")
        new = deletion.marked(kind, live, propagation, grace_period, self.now())
        if dry_run:
            return new
        if kind is CRD:
            custom.begin_cleanup(self, new)
        if deletion.is_finished(kind, new):
            return self._remove(kind, live)
        return live if new == live else self._write(kind, new, meta(live)["resourceVersion"], PLAIN)

    def _prepare(self, kind: Kind, new: Object) -> None:
        metadata = meta(new)
        if metadata.get("resourceVersion"):
            raise problems.bad_request("resourceVersion should not be set on objects to be created")
        if not metadata.get("name") and (prefix := metadata.get("generateName")):
            metadata["name"] = self._generated(kind, namespace_of(new), prefix)
        if not kind.namespaced:
            metadata.pop("namespace", None)
        for field in ("deletionTimestamp", "deletionGracePeriodSeconds", "selfLink", "resourceVersion"):
            metadata.pop(field, None)
        metadata["uid"] = str(uuid.uuid4())
        metadata["creationTimestamp"] = timestamp(self.now())
        metadata.pop("generation", None)
        if kind.group not in WITHOUT_GENERATION:
            metadata["generation"] = 1
        if "status" in kind.subresources and kind.resource != "nodes":
            new.pop("status", None)

    def _generated(self, kind: Kind, namespace: str, prefix: str) -> str:
        """A name that nothing has: among a thousand pods of one prefix, two would soon be alike."""
        while True:
            suffix = "".join(secrets.choice(RANDOM_ALPHABET) for _ in range(5))
            name = f"{prefix[:LONGEST_GENERATED]}{suffix}"
            if self.find(kind, namespace, name) is None:
                return name

    def _check_namespace(self, kind: Kind, new: Object) -> None:
        name = namespace_of(new)
        namespace = self.find(NAMESPACE, "", name)
        if namespace is None:
            raise problems.not_found(NAMESPACE, name)
        if is_deleted(namespace):
            why = f"unable to create new content in namespace {name} because it is being terminated"
            refusal = problems.forbidden(kind, name_of(new), why)
            words = {"reason": "NamespaceTerminating", "message": f"namespace {name} is being terminated"}
            refusal.details["causes"] = [{**words, "field": "metadata.namespace"}]
            raise refusal

    def _track(self, kind: Kind, live: Object, new: Object, how: Write, subresource: str) -> Object:
        if not how.manager:
            return new
        schema = custom.schema(self, kind)
        return track_update(live, new, how.manager, subresource, self.now(), kind.message, schema)

    def _write(self, kind: Kind, new: Object, expected: str | None, how: Write) -> Object:
        if how.dry_run:
            return new
        if len(encoded(new)) > LARGEST:
            raise problems.ApiError(413, "RequestEntityTooLarge", "etcdserver: request is too large")
        try:
            written = self.store.write(kind.resource, new, expected)
        except Stale:
            raise problems.conflict(kind, name_of(new)) from None
        except sqlite3.Error as error:
            raise _unwritable(error) from error
        if kind is CRD:
            custom.serve(self.kinds, written)
        return written

    def _remove(self, kind: Kind, last: Object) -> Object:
        try:
            removed = self.store.remove(kind.resource, namespace_of(last), name_of(last))
        except sqlite3.Error as error:
            raise _unwritable(error) from error
        if kind is CRD:
            custom.withdraw(self.kinds, last)
        else:
            custom.end_cleanup(self, kind)
        return removed or last


def _unwritable(error: sqlite3.Error) -> problems.ApiError:
    return problems.ApiError(
        500,
        "InternalError",
        f"the lab cannot write its cluster's state ({error}): make room on the disk (df -h .)",
    )
