"""Convolutions."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from pnet import _library as library
from pnet.torch import _plans, _sets, _sums
from pnet.torch._layers import check_channels
from pnet.torch.spconv.core import IndiceData, SparseConvTensor, expand_nd
from pnet.torch.spconv.modules import SparseModule

VOXEL_COUNT = "max_num_voxels_during_training"


class SetModule(SparseModule):
    """A module that works on a set of voxels, which it makes or finds by its indice_key."""

    def __init__(self, ndim: int, kernel_size, stride, padding, dilation, output_padding, kind: str, indice_key, name):
        if library.count("ndim", ndim, 31, 1) > 3:
            raise NotImplementedError(f"{ndim} axes: pnet has sets of voxels of 1 to 3 axes")
        super().__init__(name=name)
        self.ndim, self.indice_key, self.kind = ndim, indice_key, kind
        self.kernel_size, self.stride = expand_nd(ndim, kernel_size, "kernel_size"), expand_nd(ndim, stride, "stride")
        self.padding, self.dilation = expand_nd(ndim, padding, "padding"), expand_nd(ndim, dilation, "dilation")
        self.output_padding = expand_nd(ndim, output_padding, "output_padding")

    @property
    def subm(self) -> bool:
        return self.kind == "submanifold"

    def _numbers(self) -> list[list[int]]:
        """What sets of the same key must have in common."""
        if self.kind == "submanifold":
            return [self.kernel_size, self.dilation]
        return [self.kernel_size, self.dilation, self.stride, self.padding, self.output_padding]

    def _rule(self) -> tuple:
        return (self.kind, *map(tuple, self._numbers()))

    def _find(self, x: SparseConvTensor) -> tuple[IndiceData, dict, dict | None]:
        """The set for an input, the indice_dict of the result, with it, and what the result holds for other layers to find."""
        found = None if self.indice_key is None else x.indice_dict.get(self.indice_key)
        if found is not None and found.is_of(self.kind, self._numbers(), x):
            return found, x.indice_dict, None
        if x.indices.shape[1] != 1 + self.ndim:
            raise library.refuse(f"the layer has {self.ndim} axes, and indices is {list(x.indices.shape)}")
        if found is not None:
            if found.rule != self._rule():
                raise ValueError(f"indice_key {self.indice_key!r} belongs to another kind of set, kernel, dilation, stride or "
                                 f"padding: {found.rule}, not {self._rule()}")
            found.check_inputs(self.indice_key, x)
            return found, x.indice_dict, None
        known = x._known()
        hold = known.sets()
        made = _sets.set_of(known, x.spatial_shape, self.kernel_size, self.kind, self.stride, self.padding, self.dilation,
                            self.output_padding, x.batch_size)
        found = IndiceData(made, x.spatial_shape, self._rule())
        return found, x.indice_dict if self.indice_key is None else {**x.indice_dict, self.indice_key: found}, hold

    def _count_voxels(self, rows: int) -> None:
        """For record_voxel_count: the buffer that checkpoints of spconv have."""
        if self.training and VOXEL_COUNT in self._buffers:
            count = self._buffers[VOXEL_COUNT]
            count.copy_(torch.clamp(count, min=rows))


class SparseConvolution(SetModule):
    """weight [out_channels, *kernel_size, in_channels / groups], bias [out_channels].

    A kernel of 1 without stride and padding is a product with weight.view(in_channels, out_channels): so reads spconv these
    weights, and so checkpoints have them. An inverse convolution has no stride, so one of kernel 1 is such a product, too, and
    stays on the coarse voxels, as in spconv. algo, fp32_accum and large_kernel_fast_algo are taken and ignored.
    """

    def __init__(self, ndim: int, in_channels: int, out_channels: int, kernel_size=3, stride=1, padding=0, dilation=1,
                 groups: int = 1, bias: bool = True, subm: bool = False, output_padding=0, transposed: bool = False,
                 inverse: bool = False, indice_key: str | None = None, algo=None, fp32_accum=None,
                 record_voxel_count: bool = False, act_type=None, act_alpha: float = 0, act_beta: float = 0,
                 large_kernel_fast_algo: bool = False, name=None):
        if act_type is not None:
            raise NotImplementedError("act_type: pnet has no activations inside of convolutions: put a module behind it")
        in_channels, out_channels, groups = check_channels(in_channels, out_channels, groups)
        kind = "submanifold" if subm else "transposed" if transposed else "strided"
        super().__init__(ndim, kernel_size, stride, padding, dilation, output_padding, kind, indice_key, name)
        self.in_channels, self.out_channels, self.groups = in_channels, out_channels, groups
        self.transposed, self.inverse = transposed, inverse
        self.algo, self.fp32_accum = algo, fp32_accum
        self.conv1x1 = math.prod(self.kernel_size) == 1 and (subm or math.prod(self.stride) == 1)
        if self.conv1x1 and not subm and any(self.padding):
            raise library.refuse("padding must be 0 where kernel_size and stride are 1")
        self.weight_shape = [out_channels, *self.kernel_size, in_channels // groups]
        self.weight = nn.Parameter(torch.empty(self.weight_shape))
        if bias:
            self.bias = nn.Parameter(torch.empty(out_channels))
        else:
            self.register_parameter("bias", None)
        if record_voxel_count and not subm and not inverse:
            self.register_buffer(VOXEL_COUNT, torch.zeros(1, dtype=torch.int32))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Uniform within 1 / sqrt(fan in), which is Kaiming's for a leaky ReLU of slope sqrt(5)."""
        bound = 1 / math.sqrt(math.prod(self.kernel_size) * self.in_channels // self.groups)
        nn.init.uniform_(self.weight, -bound, bound)
        if self.bias is not None:
            nn.init.uniform_(self.bias, -bound, bound)

    def is_inverseable(self) -> bool:
        return self.indice_key is not None and not self.subm

    def extra_repr(self) -> str:
        words = [f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, stride={self.stride}"]
        for name, usual in (("padding", 0), ("dilation", 1), ("output_padding", 0)):
            if any(number != usual for number in getattr(self, name)):
                words.append(f"{name}={getattr(self, name)}")
        words += [f"groups={self.groups}"] * (self.groups != 1) + ["bias=False"] * (self.bias is None)
        return ", ".join(words)

    def _product(self, features: Tensor) -> Tensor:
        """A kernel of 1."""
        if self.groups == 1:
            result = features @ self.weight.view(self.in_channels, self.out_channels)
        else:
            grouped = features.reshape(-1, self.groups, self.in_channels // self.groups)
            weight = self.weight.view(self.groups, self.out_channels // self.groups, -1)
            result = torch.einsum("ngi,goi->ngo", grouped, weight).reshape(-1, self.out_channels)
        return result if self.bias is None else result + self.bias.to(result.dtype)

    def _back(self, x: SparseConvTensor) -> IndiceData:
        """The set that an inverse convolution turns around."""
        found = x.find_indice_pair(self.indice_key)
        if found is None:
            raise ValueError(f"an inverse convolution needs the indice_key of a convolution before it, and there is no "
                             f"{self.indice_key!r}")
        if found.is_subm:
            raise ValueError(f"indice_key {self.indice_key!r} belongs to a submanifold convolution, which has no inverse")
        if found.ksize != self.kernel_size:
            raise ValueError(f"indice_key {self.indice_key!r} belongs to the kernel {found.ksize}, not {self.kernel_size}")
        found.check_outputs(self.indice_key, x)
        return found

    def forward(self, input: SparseConvTensor, add_input: SparseConvTensor | None = None) -> SparseConvTensor:
        if not isinstance(input, SparseConvTensor):
            raise TypeError(f"expected a SparseConvTensor, not {type(input).__name__}")
        if add_input is not None:
            raise NotImplementedError("add_input: pnet has no fused sums: add the tensors behind the convolution")
        given = input._features
        if given.shape[1] != self.in_channels:
            raise library.refuse(f"features have {given.shape[1]} channels, and the layer takes {self.in_channels}")
        if self.conv1x1:
            return input.replace_feature(self._product(input.features))
        if self.inverse:
            found = self._back(input)
            made, indice_dict, hold, shape = found.made.inverse(), input.indice_dict, None, found.spatial_shape
        else:
            found, indice_dict, hold = self._find(input)
            made, shape = found.made, found.out_spatial_shape
            if self.training and VOXEL_COUNT in self._buffers:
                self._count_voxels(made.rows_out)
        learned = self._parameters  # nn.Module looks there last
        weight = learned["weight"] if "weight" in learned else self.weight
        bias = learned["bias"] if "bias" in learned else self.bias
        features = _sums.conv(made._triplets, given, weight, bias, self.groups, True)
        voxels = made._voxels[1]
        return input._with(features, voxels.indices, shape, indice_dict, voxels, hold)


def weights_by_tap(module: nn.Module) -> nn.Module:
    """Lays the weights of all convolutions in a module out in memory as the library reads them, [*kernel, in / groups, out], and
    returns the module. Names, shapes and values stay, gradients that are there too, and checkpoints load and save as before;
    calls then copy neither weights nor their gradients. Not between a forward and its backward, and before the optimizer takes a
    step: what it keeps has the order of the weights at its first step, and fused optimizers mix up numbers of two orders without
    a word. The weights are no longer contiguous: weight.view(-1) and safetensors refuse such tensors, and weight.contiguous()
    makes one of the usual order.
    """
    library.instance("module", module, nn.Module)
    for one in module.modules():
        if isinstance(one, SparseConvolution) and not one.conv1x1:
            weight = one.weight
            strides = _plans.strides_by_tap(weight.shape)
            weight.data = _laid_out(weight.data, strides)
            if weight.grad is not None:  # fused optimizers read both by their places in memory
                weight.grad = _laid_out(weight.grad, strides)
    return module


def _laid_out(given: Tensor, strides: tuple[int, ...]) -> Tensor:
    return torch.empty_strided(given.shape, strides, dtype=given.dtype, device=given.device).copy_(given)


def _plain(ndim: int, kind: str, more: dict) -> type:
    """SubMConv{ndim}d and its like, whose arguments have spconv's order."""
    class Layer(SparseConvolution):
        def __init__(self, in_channels, out_channels, kernel_size, stride=1, padding=0, dilation=1, groups=1, bias=True,
                     indice_key=None, algo=None, fp32_accum=None, record_voxel_count=False, large_kernel_fast_algo=False,
                     name=None):
            super().__init__(ndim, in_channels, out_channels, kernel_size, stride, padding, dilation, groups, bias,
                             indice_key=indice_key, algo=algo, fp32_accum=fp32_accum, record_voxel_count=record_voxel_count,
                             large_kernel_fast_algo=large_kernel_fast_algo, name=name, **more)

    return _named(Layer, f"{kind}{ndim}d")


def _inverse(ndim: int) -> type:
    class Layer(SparseConvolution):
        def __init__(self, in_channels, out_channels, kernel_size, indice_key, bias=True, algo=None, fp32_accum=None,
                     large_kernel_fast_algo=False, name=None):
            super().__init__(ndim, in_channels, out_channels, kernel_size, bias=bias, inverse=True, indice_key=indice_key,
                             algo=algo, fp32_accum=fp32_accum, large_kernel_fast_algo=large_kernel_fast_algo, name=name)

    return _named(Layer, f"SparseInverseConv{ndim}d")


def _named(made: type, name: str) -> type:
    made.__name__ = made.__qualname__ = name
    return made


SubMConv1d, SubMConv2d, SubMConv3d, SubMConv4d = (_plain(n, "SubMConv", {"subm": True}) for n in range(1, 5))
SparseConv1d, SparseConv2d, SparseConv3d, SparseConv4d = (_plain(n, "SparseConv", {}) for n in range(1, 5))
SparseConvTranspose1d, SparseConvTranspose2d, SparseConvTranspose3d, SparseConvTranspose4d = (
    _plain(n, "SparseConvTranspose", {"transposed": True}) for n in range(1, 5))
SparseInverseConv1d, SparseInverseConv2d, SparseInverseConv3d, SparseInverseConv4d = (_inverse(n) for n in range(1, 5))
