"""Resources: which names there are, quantities, and how requests and limits go together."""

from __future__ import annotations

from decimal import Decimal

from gpuworkshop.lab.api.label_syntax import key_fault
from gpuworkshop.lab.api.quantities import parse
from gpuworkshop.lab.api.shapes import Mapping, mapping
from gpuworkshop.lab.api.validation.findings import NOT_NEGATIVE, Findings

OF_CONTAINERS = ("cpu", "memory", "ephemeral-storage")
HUGE_PAGES = "hugepages-"
OVERCOMMIT = "Limit must be set for non overcommitable resources"
STANDARD = "must be a standard resource type or fully qualified"
OF_A_CONTAINER = "must be a standard resource for containers"


def amount(value: object) -> Decimal | None:
    """The number that a quantity stands for; None if it is none."""
    if type(value) not in (str, int, float):
        return None
    try:
        return parse(value)  # type: ignore[arg-type]
    except ValueError:
        return None


def is_extended(name: str) -> bool:
    """Whether it is one such as `nvidia.com/gpu`: counted in whole pieces, and never promised twice."""
    return "/" in name and "kubernetes.io/" not in name


def quantity(found: Findings, name: str, value: object, field: str) -> Decimal | None:
    """Check an amount of a resource."""
    number = amount(value)
    if number is None:
        found.invalid(field, value, _no_quantity(value))
    elif number < 0:
        found.invalid(field, value, NOT_NEGATIVE)
    elif is_extended(name) and number != number.to_integral_value():
        found.invalid(field, value, "must be an integer")
    return number


def _no_quantity(value: object) -> str:
    try:
        parse(value if isinstance(value, str) else "")
    except ValueError as error:
        return str(error)
    return ""


def requirements(found: Findings, resources: Mapping, field: str) -> None:
    """The `resources` of a container."""
    limits = _listed(found, mapping(resources, "limits"), f"{field}.limits")
    requests = _listed(found, mapping(resources, "requests"), f"{field}.requests")
    for name, request in requests.items():
        limit = limits.get(name)
        overcommit = not is_extended(name) and not name.startswith(HUGE_PAGES)
        if limit is None:
            if not overcommit and name not in mapping(resources, "limits"):
                found.required(f"{field}.limits", OVERCOMMIT)
            continue
        asked, most = mapping(resources, "requests")[name], mapping(resources, "limits")[name]
        if not overcommit and request != limit:
            found.invalid(f"{field}.requests", asked, f"must be equal to {name} limit of {most}")
        elif request > limit:
            found.invalid(f"{field}.requests", asked, f"must be less than or equal to {name} limit of {most}")


def _listed(found: Findings, listed: Mapping, field: str) -> dict[str, Decimal]:
    numbers = {}
    for name, value in listed.items():
        at = f"{field}[{name}]"
        _container_resource(found, name, at)
        if (number := quantity(found, name, value, at)) is not None:
            numbers[name] = number
    return numbers


def _container_resource(found: Findings, name: str, field: str) -> None:
    if name in OF_CONTAINERS or name.startswith(HUGE_PAGES):
        return
    if fault := key_fault(name):
        found.invalid(field, name, fault)
    elif "/" not in name:
        found.invalid(field, name, STANDARD)
        found.invalid(field, name, OF_A_CONTAINER)
