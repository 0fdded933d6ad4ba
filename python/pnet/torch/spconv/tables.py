"""Several tensors to one, and one to several."""

from __future__ import annotations

import torch

from pnet.torch.spconv import functional
from pnet.torch.spconv.core import SparseConvTensor, check_same
from pnet.torch.spconv.modules import SparseModule


class _Table(SparseModule):
    def input_spatial_size(self, out_size):
        return out_size


class JoinTable(_Table):
    """Features of the same voxels behind one another."""

    def forward(self, input: list[SparseConvTensor]) -> SparseConvTensor:
        for other in input[1:]:
            check_same(input[0], other)
        return input[0].replace_feature(torch.cat([x.features for x in input], 1))


class AddTable(_Table):
    """The sum of features of the same voxels."""

    def forward(self, input: list[SparseConvTensor]) -> SparseConvTensor:
        total = input[0]
        for other in input[1:]:
            total = total + other
        return total


class AddTableMisaligned(_Table):
    """functional.sparse_add."""

    def forward(self, input: list[SparseConvTensor]) -> SparseConvTensor:
        return functional.sparse_add(*input)


class ConcatTable(_Table):
    """The list of what each module makes of the input."""

    def forward(self, input) -> list:
        return [module(input) for module in self._modules.values()]

    def add(self, module) -> ConcatTable:
        self.add_module(str(len(self._modules)), module)
        return self

    def input_spatial_size(self, out_size):
        return self._modules["0"].input_spatial_size(out_size)
