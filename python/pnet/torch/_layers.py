"""Layers: convolutions over sets of voxels and of points as modules."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from pnet import _library as library
from pnet.torch._points import Points, PointSet
from pnet.torch._sets import VoxelSet


def check_channels(in_channels: int, out_channels: int, groups: int) -> tuple[int, int, int]:
    """The same as integers; raises Error unless the groups divide both."""
    given = {"in_channels": in_channels, "out_channels": out_channels, "groups": groups}
    found = tuple(library.count(name, value, 31, 1) for name, value in given.items())
    if found[0] % found[2] or found[1] % found[2]:
        raise library.refuse(f"{groups} groups do not divide {in_channels} channels in and {out_channels} out")
    return found


class _SetConv(nn.Module):
    """weight [taps, in_channels / groups, out_channels], bias [out_channels]; both begin uniform within 1 / sqrt(fan in)."""

    def __init__(self, taps: int, in_channels: int, out_channels: int, groups: int, bias: bool):
        super().__init__()
        in_channels, out_channels, groups = check_channels(in_channels, out_channels, groups)
        self.in_channels, self.out_channels, self.groups = in_channels, out_channels, groups
        self.weight = nn.Parameter(torch.empty(taps, in_channels // groups, out_channels))
        if bias:
            self.bias = nn.Parameter(torch.empty(out_channels))
        else:
            self.register_parameter("bias", None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        bound = 1 / math.sqrt(self.weight.shape[0] * self.weight.shape[1])
        for given in self.parameters():
            nn.init.uniform_(given, -bound, bound)

    def _words(self) -> str:
        return f"{self.in_channels}, {self.out_channels}" + f", groups={self.groups}" * (self.groups != 1) + (
            ", bias=False" * (self.bias is None))


class VoxelConv(_SetConv):
    """A convolution over a set of voxels that is given with the features.

    kernel   the kernel's size, a number for all of three axes, or one an axis
    """

    def __init__(self, in_channels: int, out_channels: int, kernel=3, *, groups: int = 1, bias: bool = True):
        sizes = library.per_axis("kernel", kernel, 3 if library.is_single(kernel) else min(max(len(kernel), 1), 3))
        super().__init__(math.prod(sizes), in_channels, out_channels, groups, bias)
        self.kernel = sizes

    def extra_repr(self) -> str:
        return f"{self._words()}, kernel={self.kernel}"

    def forward(self, features: Tensor, made: VoxelSet) -> Tensor:
        """[rows_in, in_channels] to [rows_out, out_channels] of a set of voxel_set() with this kernel, or its inverse."""
        return made.conv(features, self.weight, self.bias, self.groups)


class PointConv(_SetConv):
    """A convolution whose kernel is centred on points: the layer conv of a model.

    kernel       kernel cells an axis; even ones between two levels alone
    radius       metres; None: kernel / 2 cells of the finer level
    knn          so many nearest points instead of a radius
    shape        "ball" or "cube"
    degrade      "voxel", or some of "centre", "neighbour", "kernel"
    """

    def __init__(self, in_channels: int, out_channels: int, kernel: int = 3, *, radius: float | None = None,
                 knn: int | None = None, shape: str = "ball", degrade: str | tuple[str, ...] = (), groups: int = 1,
                 bias: bool = True):
        kernel = library.count("kernel", kernel, 31, 1)
        knn = None if knn is None else library.count("knn", knn, 31, 1)
        radius = None if radius is None else library.number("radius", radius, zero=False)
        super().__init__(kernel ** 3, in_channels, out_channels, groups, bias)
        self.kernel, self.radius, self.knn, self.shape = kernel, radius, knn, shape
        self.degrade = degrade if isinstance(degrade, str) else tuple(degrade)

    def extra_repr(self) -> str:
        words = f"{self._words()}, kernel={self.kernel}"
        for name, usual in (("radius", None), ("knn", None), ("shape", "ball"), ("degrade", ())):
            if getattr(self, name) != usual:
                words += f", {name}={getattr(self, name)!r}"
        return words

    def set(self, points: Points, out: Points | None = None) -> PointSet:
        """The set that forward works on, made once for the points."""
        to = points if out is None else out
        return to.set(points, self.kernel, radius=self.radius, knn=self.knn, shape=self.shape, degrade=self.degrade)

    def forward(self, features: Tensor, points: Points | PointSet, out: Points | None = None) -> Tensor:
        """From features of `points` to those of `out`: the same points (None), or a level and what it was sampled from, in either
        direction. A set that set() made may be given instead of points: torch.compile cannot make sets inside a graph."""
        made = points if isinstance(points, PointSet) else self.set(points, out)
        return made.conv(features, self.weight, self.bias, self.groups)
