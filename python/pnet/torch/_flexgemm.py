"""The call of FlexGEMM."""

from __future__ import annotations

from torch import Tensor

from pnet import _library as library
from pnet.torch import _sets, _sums


class NeighborCache:
    """A set that sparse_submanifold_conv3d gives and takes, for the same coordinates, shape, kernel and dilation."""

    def __init__(self, made: _sets.VoxelSet, rule: tuple):
        self._set, self._rule = made, rule

    def of(self, coords: Tensor, rule: tuple) -> _sets.VoxelSet:
        """The set, if it is that of these coordinates and this rule."""
        if rule != self._rule:
            raise ValueError(f"the neighbor_cache was made for shape, kernel and dilation {self._rule}, not {rule}")
        if not self._set._voxels[0].same_rows(coords):
            raise ValueError("the neighbor_cache was made for other coordinates")
        return self._set


def sparse_submanifold_conv3d(feats: Tensor, coords: Tensor, shape, weight: Tensor, bias: Tensor | None = None,
                              neighbor_cache: NeighborCache | None = None, dilation=(1, 1, 1)) -> tuple[Tensor, NeighborCache]:
    """A submanifold convolution as FlexGEMM calls it.

    feats [N, in], coords int32 [N, 4]: the sample, x, y, z; shape [samples, channels, extent of x, y, z]; weight
    [out, Kx, Ky, Kz, in], each K odd; bias [out]. Returns [N, out] and a cache for other layers with the same coordinates, shape,
    kernel and dilation; given for others it is a ValueError.
    """
    if weight.dim() != 5:
        raise library.refuse(f"weight is {list(weight.shape)}, expected [out, Kx, Ky, Kz, in]")
    if len(shape) != 5:
        raise library.refuse(f"shape is {list(shape)}, expected [samples, channels, extent of x, y, z]")
    samples = library.count("shape[0]", shape[0], 31, 1)
    kernel, extent = tuple(weight.shape[1:4]), tuple(library.per_axis("extent", shape[2:], 3))
    rule = (extent, kernel, tuple(library.per_axis("dilation", dilation, 3)))
    if neighbor_cache is None:
        made = _sets.voxel_set(coords, extent, kernel, dilation=rule[2], batches=samples)
        neighbor_cache = NeighborCache(made, rule)
    else:
        made = neighbor_cache.of(coords, rule)
    return _sums.conv(made._triplets, feats, weight, bias, 1, outer=True), neighbor_cache
