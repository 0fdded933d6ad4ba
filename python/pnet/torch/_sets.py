"""Sets of voxels as tensors, and the sums over them for all types that PyTorch's autocast uses."""

from __future__ import annotations

import operator
import threading
import weakref
from collections.abc import Sequence

import torch
from torch import Tensor

from pnet import _library as library
from pnet.torch import _ops

_NARROW = (torch.bfloat16, torch.float16)


def axes(what: str, value, count: int) -> list[int]:
    """One number of every axis, or one for all of them."""
    if hasattr(value, "__len__"):
        numbers = [operator.index(number) for number in value]
    else:
        numbers = [operator.index(value)] * count
    if len(numbers) != count:
        raise library.refuse(f"{what} has {len(numbers)} numbers for {count} axes")
    return numbers


def version_of(tensor: Tensor) -> int | None:
    """Changes when the tensor is written to; None: PyTorch does not know (inference tensors, while it compiles)."""
    if torch.compiler.is_compiling() or tensor.is_inference():
        return None
    return tensor._version


def same_rows(known: Tensor, version: int | None, given: Tensor) -> bool:
    """Whether `given` has the rows that `known` had at this version."""
    if version is not None and version_of(known) not in (None, version):
        raise ValueError("the indices of voxels were written to in place after a set was made of them: give a new tensor")
    return known is given or torch.equal(known, given)


def _result_type(features: Tensor, *others: Tensor | None) -> torch.dtype:
    """What a sum returns: the type of autocast, or else that of the features, which the others must have too."""
    for given in (features, *others):
        if given is not None and given.dtype not in (torch.float32, *_NARROW):
            raise library.refuse(f"{given.dtype}: expected float32, bfloat16 or float16")
    if torch.is_autocast_enabled(features.device.type):
        return torch.get_autocast_dtype(features.device.type)
    for given in others:
        if given is not None and given.dtype != features.dtype:
            raise library.refuse(f"features are {features.dtype}, and weights {given.dtype}: without autocast both have one type")
    return features.dtype


class VoxelSet:
    """Which rows of voxels a convolution or a pool joins, by which tap: made by voxel_set().

    indices           int32 [rows_out, 1 + axes], the voxels of the outputs
    extent            of the outputs, a number an axis
    rows_in, rows_out, taps
    """

    def __init__(self, packed: Tensor, indices: tuple[Tensor, Tensor], extents: tuple[list[int], list[int]], taps: int,
                 inverted: bool = False):
        self._packed = packed
        self._indices, self._extents = indices, extents  # of inputs and outputs
        self._inverted = inverted
        self.taps = taps

    @property
    def indices(self) -> Tensor:
        return self._indices[1]

    @property
    def extent(self) -> list[int]:
        return self._extents[1]

    @property
    def rows_in(self) -> int:
        return self._indices[0].shape[0]

    @property
    def rows_out(self) -> int:
        return self._indices[1].shape[0]

    def inverse(self) -> VoxelSet:
        """The same triplets from the outputs back to the inputs, in their order."""
        return VoxelSet(self._packed, self._indices[::-1], self._extents[::-1], self.taps, not self._inverted)

    def conv(self, features: Tensor, weight: Tensor, bias: Tensor | None = None, groups: int = 1) -> Tensor:
        """result[i] = bias + sum over (i, j, k) of features[j] weight[k].

        features [rows_in, in], weight [taps, in / groups, out], bias [out]; returns [rows_out, out]. Products and sums are
        float32 whatever the types; the result has the type of autocast, or else that of the features.
        """
        kind = _result_type(features, weight, bias)
        given = None if bias is None else bias.float()
        return _ops.conv(features.float(), weight.float(), given, self._packed, self.rows_out, self._inverted, groups).to(kind)

    def pool(self, features: Tensor, kind: str = "max") -> Tensor:
        """result[i] = "max", "mean" or "sum" over (i, j, k) of features[j], 0 where there is none: [rows_out, channels]."""
        if features.dtype not in (torch.float32, *_NARROW):
            raise library.refuse(f"features are {features.dtype}: expected float32, bfloat16 or float16")
        return _ops.pool(features.float(), self._packed, self.rows_out, kind, self._inverted)[0].to(features.dtype)


class _Cache:
    """Sets of tensors of indices that are still there, by rule. It keeps no tensor of indices, and forgets sets with it."""

    def __init__(self):
        self._known: dict[int, tuple[weakref.ref, int, dict]] = {}
        self._lock = threading.RLock()  # a reference may end while its thread holds it

    def of(self, indices: Tensor) -> dict:
        """The sets of this tensor as it is now; one to throw away where PyTorch does not know whether it is written to."""
        version = version_of(indices)
        if version is None:
            return {}
        with self._lock:
            known = self._known.get(id(indices))
            if known is None or known[0]() is not indices or known[1] != version:
                known = weakref.ref(indices, self._forget(id(indices))), version, {}
                self._known[id(indices)] = known
            return known[2]

    def _forget(self, number: int):
        def forget(ended: weakref.ref) -> None:
            with self._lock:
                known = self._known.get(number)
                if known is not None and known[0] is ended:
                    del self._known[number]
        return forget


_cache = _Cache()


def extent_after(kind: str, extent: Sequence[int], kernel, stride, padding, dilation, output_padding) -> list[int]:
    """The extent of the outputs, as docs/library.md defines it."""
    if kind == "submanifold":
        return list(extent)
    if kind == "strided":
        return [(d + 2 * p - a * (k - 1) - 1) // s + 1 for d, k, s, p, a in zip(extent, kernel, stride, padding, dilation)]
    return [(d - 1) * s - 2 * p + a * (k - 1) + o + 1
            for d, k, s, p, a, o in zip(extent, kernel, stride, padding, dilation, output_padding)]


def voxel_set(indices: Tensor, extent, kernel=3, *, kind: str = "submanifold", stride=1, padding=0, dilation=1, output_padding=0,
              batches: int = 1) -> VoxelSet:
    """The set of voxels that a kernel joins.

    On each axis, with the kernel's size K, stride s, padding p and dilation d, the voxels x and y meet in tap t where
    y s + t d - p = x. submanifold: outputs are the inputs; strided: outputs are all y that meet an input x; transposed: outputs
    are all x that meet an input y.

    indices   int32 [rows, 1 + axes]: the sample, then one to three indices, such as (batch, z, y, x), rows in any order
    extent    of the input, a number an axis: 0 <= index < extent
    kernel, stride, padding, dilation, output_padding   a number for all axes, or one an axis
    batches   samples; they may be empty

    A set of the same tensor by the same rule is made once, as long as the tensor is there and not written to.
    Raises pnet.Error, which names rows of voxels that lie outside or are there twice.
    """
    if indices.dim() != 2 or not 2 <= indices.shape[1] <= 4:
        raise library.refuse(f"indices is {list(indices.shape)}, expected [rows, 2 to 4]: the sample, then one to three indices")
    count = indices.shape[1] - 1
    numbers = [axes(name, value, count) for name, value in (
        ("kernel", kernel), ("stride", stride), ("padding", padding), ("dilation", dilation), ("output_padding", output_padding))]
    inside = axes("extent", extent, count)
    rule = (kind, batches, *map(tuple, (inside, *numbers)))
    sets = _cache.of(indices)
    if rule not in sets:
        outputs, packed = _ops.voxel_set(indices, kind, inside, *numbers, batches)
        if torch.compiler.is_compiling() and kind != "submanifold":
            torch._check(outputs.shape[0] > 1)  # or else a batch norm behind it could not be compiled, which asks for that
        sets[rule] = packed, None if kind == "submanifold" else outputs
    packed, outputs = sets[rule]
    taps = 1
    for number in numbers[0]:
        taps *= number
    return VoxelSet(packed, (indices, indices if outputs is None else outputs),
                    (inside, extent_after(kind, inside, *numbers)), taps)


def sample_set(indices: Tensor, batches: int) -> VoxelSet:
    """One output for each sample, which joins all rows of it."""
    i = indices[:, 0].contiguous()
    j = torch.arange(indices.shape[0], dtype=torch.int32, device=indices.device)
    packed = _ops.triplet_set(i, j, torch.zeros_like(j), batches, indices.shape[0], 1)
    samples = torch.arange(batches, dtype=torch.int32, device=indices.device).reshape(-1, 1)
    return VoxelSet(packed, (indices, samples), ([], []), 1)
