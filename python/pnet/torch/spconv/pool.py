"""Pools."""

from __future__ import annotations

import torch
from torch import Tensor

from pnet import _library as library
from pnet.torch import _sets
from pnet.torch.spconv.conv import VOXEL_COUNT, SetModule
from pnet.torch.spconv.core import SparseConvTensor
from pnet.torch.spconv.modules import SparseModule


class _Pool(SetModule):
    """algo is taken and ignored."""

    how = "max"

    def __init__(self, ndim: int, kernel_size=3, stride=1, padding=0, dilation=1, indice_key=None, subm: bool = False, algo=None,
                 record_voxel_count: bool = False, name=None):
        kind = "submanifold" if subm else "strided"
        super().__init__(ndim, kernel_size, kernel_size if stride is None else stride, padding, dilation, 0, kind, indice_key,
                         name)
        self.algo = algo
        if record_voxel_count and not subm:
            self.register_buffer(VOXEL_COUNT, torch.zeros(1, dtype=torch.int32))

    def extra_repr(self) -> str:
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}, dilation={self.dilation}"

    def forward(self, input: SparseConvTensor) -> SparseConvTensor:
        if not isinstance(input, SparseConvTensor):
            raise TypeError(f"expected a SparseConvTensor, not {type(input).__name__}")
        found, indice_dict, hold = self._find(input)
        self._count_voxels(found.out_indices.shape[0])
        features = found.made.pool(input.features, self.how)
        voxels = found.made._voxels[1]
        return input._with(features, voxels.indices, found.out_spatial_shape, indice_dict, voxels, hold)


class SparseMaxPool(_Pool):
    """The largest feature of the voxels that are there, by channel. Of equal ones that of the first tap gets the gradient."""


class SparseAvgPool(_Pool):
    """The mean over the voxels that are there."""

    how = "mean"


def _plain(base: type, ndim: int) -> type:
    class Layer(base):
        def __init__(self, kernel_size, stride=None, padding=0, dilation=1, indice_key=None, algo=None,
                     record_voxel_count=False, name=None):
            super().__init__(ndim, kernel_size, stride, padding, dilation, indice_key=indice_key, algo=algo,
                             record_voxel_count=record_voxel_count, name=name)

    Layer.__name__ = Layer.__qualname__ = f"{base.__name__}{ndim}d"
    return Layer


SparseMaxPool1d, SparseMaxPool2d, SparseMaxPool3d, SparseMaxPool4d = (_plain(SparseMaxPool, n) for n in range(1, 5))
SparseAvgPool1d, SparseAvgPool2d, SparseAvgPool3d = (_plain(SparseAvgPool, n) for n in range(1, 4))


class _GlobalPool(SparseModule):
    """[batch_size, C]; 0 for samples without voxels."""

    how = "max"

    def __init__(self, name=None):
        super().__init__(name=name)

    def forward(self, input: SparseConvTensor) -> Tensor:
        if not isinstance(input, SparseConvTensor):
            raise TypeError(f"expected a SparseConvTensor, not {type(input).__name__}")
        if input.indices.shape[0] != input.features.shape[0]:
            raise library.refuse(f"there are {input.features.shape[0]} rows of features for {input.indices.shape[0]} voxels")
        return _sets.sample_set(input._known(), input.batch_size).pool(input.features, self.how)


class SparseGlobalMaxPool(_GlobalPool):
    """The largest feature of each sample, by channel."""


class SparseGlobalAvgPool(_GlobalPool):
    """The mean of each sample."""

    how = "mean"
