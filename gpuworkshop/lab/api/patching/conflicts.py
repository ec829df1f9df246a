"""The refusal of an apply that would change what others own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

from gpuworkshop.lab.api.patching.entries import UPDATE, Entry
from gpuworkshop.lab.api.patching.fieldsv1 import members, text_of
from gpuworkshop.lab.api.problems import ApiError, Cause


def refused(entries: Sequence[Entry]) -> ApiError:
    """409 for the fields in the entries, which their managers own and which would change."""
    owners = sorted(entries, key=lambda entry: (entry.manager, entry.operation, entry.api_version))
    conflicts = [(owner, text_of(path)) for owner in owners for path in members(owner.fields)]
    causes = [
        Cause("FieldManagerConflict", f"conflict with {_name(owner)}", path) for owner, path in conflicts
    ]
    if len(conflicts) == 1:
        owner, path = conflicts[0]
        words = f"1 conflict: conflict with {_name(owner)}: {path}"
    else:
        lines = []
        for owner in owners:
            lines.append(f"conflicts with {_name(owner)}:")
            lines += [f"- {text_of(path)}" for path in members(owner.fields)]
        words = f"{len(conflicts)} conflicts: " + "\n".join(lines)
    return ApiError(
        409, "Conflict", f"Apply failed with {words}", {"causes": [asdict(cause) for cause in causes]}
    )


def _name(entry: Entry) -> str:
    name = f'"{entry.manager}"'
    if entry.subresource:
        name += f' with subresource "{entry.subresource}"'
    return f"{name} using {entry.api_version}" if entry.operation == UPDATE else name
