"""Modules around layers."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable

import torch
from torch import Tensor, nn

from pnet.torch.spconv.core import SparseConvTensor


def is_spconv_module(module) -> bool:
    """Whether SparseSequential gives it the sparse tensor, and not its features."""
    return isinstance(module, (SparseModule, SparseBatchNorm, SparseSyncBatchNorm, SparseReLU, SparseIdentity))


def is_sparse_conv(module) -> bool:
    from pnet.torch.spconv.conv import SparseConvolution
    return isinstance(module, SparseConvolution)


class SparseModule(nn.Module):
    """A module whose forward takes a SparseConvTensor."""

    def __init__(self, name=None):
        super().__init__()
        self.name = name
        self._sparse_unique_name = ""


def _on_rows(module: nn.Module, forward: Callable[[Tensor], Tensor], features: Tensor) -> Tensor:
    """What a module of PyTorch makes of features by `forward`. It is called without rows, too, so that its parameters get
    gradients, which are 0. PyTorch then leaves the running statistics of norms as they are, but counts a batch, by which norms
    without a momentum average: the count stays here. Norms that several processes share count the batches of all of them."""
    if torch.compiler.is_compiling() or features.shape[0]:
        return forward(features)
    together = torch.distributed.is_available() and torch.distributed.is_initialized()
    counts = [norm.num_batches_tracked for norm in module.modules() if isinstance(norm, nn.modules.batchnorm._BatchNorm)
              and norm.num_batches_tracked is not None and not (together and isinstance(norm, nn.SyncBatchNorm))]
    before = [count.clone() for count in counts]
    result = forward(features)
    for count, known in zip(counts, before):
        count.copy_(known)
    return result


class SparseSequential(SparseModule):
    """Modules one behind another, as nn.Sequential; those that are no SparseModule get and give the features alone."""

    def __init__(self, *args, **kwargs):
        super().__init__()
        if len(args) == 1 and isinstance(args[0], OrderedDict):
            args, kwargs = (), {**args[0], **kwargs}
        for number, module in enumerate(args):
            self.add_module(str(number), module)
        for name, module in kwargs.items():
            if name in self._modules:
                raise ValueError(f"there are two modules {name!r}")
            self.add_module(name, module)

    def __getitem__(self, index):
        if not -len(self) <= index < len(self):
            raise IndexError(f"there is no module {index}: there are {len(self)}")
        return list(self._modules.values())[index]

    def __len__(self):
        return len(self._modules)

    def add(self, module, name=None):
        """Adds a module behind the others."""
        name = str(len(self)) if name is None else name
        if name in self._modules:
            raise KeyError(f"there are two modules {name!r}")
        self.add_module(name, module)

    def forward(self, input):
        for module in self._modules.values():
            if is_spconv_module(module) or not isinstance(input, SparseConvTensor):
                input = module(input)
            else:
                input = input.replace_feature(_on_rows(module, module, input.features))
        return input


def assign_name_for_sparse_modules(module: nn.Module) -> None:
    for name, one in module.named_modules():
        if isinstance(one, SparseModule):
            one._sparse_unique_name = name


class _OnFeatures:
    """Makes forward of a module of PyTorch take a SparseConvTensor too."""

    def forward(self, input):
        if isinstance(input, SparseConvTensor):
            return input.replace_feature(_on_rows(self, super().forward, input.features))
        return _on_rows(self, super().forward, input)


class SparseBatchNorm(_OnFeatures, nn.BatchNorm1d):
    pass


class SparseSyncBatchNorm(_OnFeatures, nn.SyncBatchNorm):
    pass


class SparseReLU(_OnFeatures, nn.ReLU):
    pass


class SparseIdentity(_OnFeatures, nn.Identity):
    pass


class Identity(SparseModule):
    def forward(self, input):
        return input


class ToDense(SparseModule):
    """SparseConvTensor.dense()."""

    def forward(self, x: SparseConvTensor):
        return x.dense()


class RemoveGrid(SparseModule):
    """Drops `grid`."""

    def forward(self, x: SparseConvTensor):
        x.grid = None
        return x
