"""The GPU models that a simulated GPU can be, and how the trace's values scale to them.

The table is `models.toml`. Power scales by power cap, memory by size, clocks by the highest SM clock,
PCIe traffic by its generation (each doubles the last one's rate). Activity is left as it was recorded.
What no data sheet tells is absent: the memory clock of a model that was not recorded.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import cache
from importlib import resources

from gpuworkshop.exporter.fields import Field


@dataclass(frozen=True)
class Model:
    """One GPU model's limits; `key` is its short name, `name` the driver's."""

    key: str
    name: str
    also: tuple[str, ...]
    power_cap_w: float
    memory_mib: int
    max_sm_clock_mhz: float
    pcie_generation: int
    hbm: bool
    mig_slices: int

    @property
    def memory_bytes(self) -> int:
        """The whole framebuffer."""
        return self.memory_mib * 2**20

    def factors(self, recorded: Model) -> dict[Field, float]:
        """What each field of a trace of `recorded` is multiplied by; 1 where missing from the answer."""
        pcie = 2.0 ** (self.pcie_generation - recorded.pcie_generation)
        memory = self.memory_mib / recorded.memory_mib
        power = self.power_cap_w / recorded.power_cap_w
        return {
            Field.POWER: power,
            Field.ENERGY: power,
            Field.SM_CLOCK: self.max_sm_clock_mhz / recorded.max_sm_clock_mhz,
            Field.FB_USED: memory,
            Field.FB_FREE: memory,
            Field.PCIE_TX: pcie,
            Field.PCIE_RX: pcie,
        }

    def unknown(self, recorded: Model) -> frozenset[Field]:
        """The fields of a trace of `recorded` that nothing is known of for this model."""
        fields = set()
        if self.key != recorded.key:
            fields.add(Field.MEMORY_CLOCK)
        if not self.hbm:
            fields.add(Field.MEMORY_TEMP)
        return frozenset(fields)


@cache
def models() -> dict[str, Model]:
    """Every model by its key."""
    table = tomllib.loads(resources.files("gpuworkshop.exporter").joinpath("models.toml").read_text())
    return {key: Model(key=key, **{**row, "also": tuple(row["also"])}) for key, row in table.items()}


def find(name: str) -> Model | None:
    """The model of that key or full name, in any case; None if there is none."""
    wanted = name.casefold().strip()
    for model in models().values():
        names = (model.key, model.name, *model.also)
        if wanted in (known.casefold() for known in names):
            return model
    return None
