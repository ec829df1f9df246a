"""A pod's folder: its volumes, and for each container a root in which they are mounted.

`<pods>/<uid>/volumes/NAME` holds a volume; `<pods>/<uid>/<container>/rootfs/MOUNT/PATH` is a link to it. The
container's process sees the machine's own file system, so a mount path in its command, arguments and
environment is rewritten to the place below its rootfs. `<pods>` is a short path without spaces.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from gpuworkshop.lab.api.objects import Object, uid_of
from gpuworkshop.lab.kubelet import atomic_volume
from gpuworkshop.lab.kubelet.paths import inside
from gpuworkshop.lab.kubelet.volumes import Content, Missing, Sources, content_of

# What may stand before and behind a path that is a whole one, in a command line or a shell's text.
_BEFORE, _BEHIND = r"(?<![\w/.\-])", r"(?=$|[/\s'\"`:;,|&<>()\]}])"


class PodFolder:
    """The folder of one pod, made when it is first needed; readable by its owner only."""

    def __init__(self, pods: Path, pod: Object) -> None:
        self.path = pods / uid_of(pod)

    def root(self, container: str) -> Path:
        """The container's root."""
        return self.path / container / "rootfs"

    def programs(self, container: str) -> Path:
        """Commands that the container has on top of the machine's."""
        return self.path / container / "bin"

    def log(self, container: str, life: int) -> Path:
        """The log of the container's life of that number, from 0."""
        return self.path / container / "logs" / f"{life}.log"

    def make(self) -> None:
        """Make the folder."""
        self.path.mkdir(mode=0o700, parents=True, exist_ok=True)

    def write_volumes(self, pod: Object, sources: Sources, on_disk: bool) -> None:
        """Make the pod's volumes, or only check that what they hold is there. Raises Missing."""
        sources = sources if on_disk else replace(sources, tokens=None)
        for volume in pod["spec"].get("volumes") or []:
            try:
                content = content_of(volume, pod, sources)
            except Missing as error:
                raise Missing(f'MountVolume.SetUp failed for volume "{volume["name"]}" : {error}') from error
            if on_disk:
                self.write_volume(volume["name"], content)

    def write_volume(self, name: str, content: Content) -> None:
        """Make a volume, or bring its files to what `content` has now."""
        self.make()
        volume = self.path / "volumes" / name
        volume.mkdir(parents=True, exist_ok=True)
        if not content.keeps_others:
            atomic_volume.write(volume, content.files)

    def mount(self, container: Mapping[str, Any]) -> None:
        """Make the container's root, with its volumes mounted."""
        self.make()
        root = self.root(container["name"])
        root.mkdir(parents=True, exist_ok=True)
        mounts = container.get("volumeMounts") or []
        for mount in sorted(mounts, key=lambda mount: len(mount["mountPath"])):
            self._mount(inside(root, mount["mountPath"]), mount)

    def _mount(self, place: Path, mount: Mapping[str, Any]) -> None:
        volume = self.path / "volumes" / mount["name"]
        source = inside(volume, mount.get("subPath") or "/")
        if source != volume and atomic_volume.is_one(volume) and source.exists():
            _copy(place, source)  # a subPath stays as it is now, as a real one, which is a mount of the file
            return
        source.mkdir(parents=True, exist_ok=True)
        _link(place, source)

    def remove(self) -> None:
        """Remove the folder with all that is in it."""
        shutil.rmtree(self.path, ignore_errors=True)

    def rewritten(self, container: Mapping[str, Any], texts: Sequence[str]) -> list[str]:
        """The texts with each of the container's mount paths put below its root."""
        paths = {mount["mountPath"].rstrip("/") for mount in container.get("volumeMounts") or []}
        paths.discard("")
        if not paths:
            return list(texts)
        every = "|".join(re.escape(path) for path in sorted(paths, key=len, reverse=True))
        pattern = re.compile(f"{_BEFORE}(?:{every}){_BEHIND}")
        root = str(self.root(container["name"]))
        return [pattern.sub(lambda match: root + match[0], text) for text in texts]


def _link(place: Path, target: Path) -> None:
    _clear(place)
    place.symlink_to(target)


def _copy(place: Path, source: Path) -> None:
    _clear(place)
    if source.is_dir():
        shutil.copytree(source, place)
    else:
        shutil.copy2(source, place)


def _clear(place: Path) -> None:
    place.parent.mkdir(parents=True, exist_ok=True)
    if place.is_dir() and not place.is_symlink():
        shutil.rmtree(place)
    else:
        place.unlink(missing_ok=True)
