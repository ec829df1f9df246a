"""Lists in pages: `limit` cuts one off, and a `continue` token says where the next begins."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from gpuworkshop.lab.api import options, problems
from gpuworkshop.lab.api.objects import Object, encoded, name_of, namespace_of
from gpuworkshop.lab.api.registry import Registry


def page(
    query: Mapping[str, str], found: Sequence[Object], registry: Registry
) -> tuple[Sequence[Object], dict[str, Any]]:
    """The page that `limit` and `continue` ask for, and the list's metadata.

    Later pages keep the resourceVersion of the first, so a watch from there misses nothing.
    """
    revision = str(registry.store.revision)
    if token := query.get("continue"):
        revision, after = _read_token(token)
        if registry.store.log.position_after(int(revision)) is None:
            raise problems.expired("The provided continue parameter is too old")
        found = [obj for obj in found if _key(obj) > after]
    limit = options.whole_number(query, "limit")
    list_meta: dict[str, Any] = {"resourceVersion": revision}
    if 0 < limit < len(found):
        # The real one does not count what a selector leaves out.
        if not (query.get("labelSelector") or query.get("fieldSelector")):
            list_meta["remainingItemCount"] = len(found) - limit
        found = found[:limit]
        list_meta["continue"] = base64.urlsafe_b64encode(encoded([revision, _key(found[-1])])).decode()
    return found, list_meta


def _key(obj: Object) -> list[str]:
    return [namespace_of(obj), name_of(obj)]


def _read_token(token: str) -> tuple[str, list[str]]:
    try:
        revision, after = msgspec.json.decode(
            base64.urlsafe_b64decode(token.encode()), type=tuple[str, list[str]]
        )
        int(revision)
    except (binascii.Error, ValueError, msgspec.MsgspecError) as error:
        raise problems.bad_request("continue key is not valid") from error
    return revision, after
