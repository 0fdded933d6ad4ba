"""Sets of voxels, made once for each tensor of indices."""

from __future__ import annotations

import operator
import threading
import weakref
from collections.abc import Sequence

import torch
from torch import Tensor

from pnet import _library as library
from pnet.torch import _ops, _sums
from pnet.torch._calls import Triplets


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


class VoxelSet:
    """Which rows of voxels a convolution or a pool joins, by which tap: made by voxel_set().

    indices           int32 [rows_out, 1 + axes], the voxels of the outputs
    extent            of the outputs, a number an axis
    rows_in, rows_out, taps
    """

    def __init__(self, triplets: Triplets, indices: tuple[Tensor, Tensor], extents: tuple[list[int], list[int]]):
        self._triplets = triplets
        self._indices, self._extents = indices, extents  # of inputs and outputs

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

    @property
    def taps(self) -> int:
        return self._triplets.taps

    def inverse(self) -> VoxelSet:
        """The same triplets from the outputs back to the inputs, in their order."""
        return VoxelSet(self._triplets.inverse(), self._indices[::-1], self._extents[::-1])

    def conv(self, features: Tensor, weight: Tensor, bias: Tensor | None = None, groups: int = 1) -> Tensor:
        """result[i] = bias + sum over (i, j, k) of features[j] weight[k].

        features [rows_in, in], weight [taps, in / groups, out], bias [out]; returns [rows_out, out]. The result has the type of
        autocast, or else that of the features. Products and sums are float32 on the CPU whatever the types; on a GPU features in
        16 bits are multiplied as they are, and those in float32 as torch.set_float32_matmul_precision says. Gradients of float32
        weights are float32.
        """
        return _sums.conv(self._triplets, features, weight, bias, groups)

    def pool(self, features: Tensor, kind: str = "max") -> Tensor:
        """result[i] = "max", "mean" or "sum" over (i, j, k) of features[j], 0 where there is none: [rows_out, channels]."""
        return _sums.pool(self._triplets, features, kind)


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
        # as _sums.conv(): an operator takes as long as the set of some thousand voxels
        make = _ops.make_voxel_set if _sums.is_direct(indices) else _ops.voxel_set
        outputs, by_out, by_in, sizes = make(indices, kind, inside, *numbers, batches)
        if kind == "submanifold":
            outputs = None
        rows = indices.shape[0]
        taps = 1
        for number in numbers[0]:
            taps *= number
        triplets = Triplets(by_out, by_in, sizes.shape[1], rows if outputs is None else outputs.shape[0], rows, taps)
        if not torch.compiler.is_compiling():
            triplets.made()
        elif outputs is not None:
            torch._check(outputs.shape[0] > 1)  # or else a batch norm behind it could not be compiled, which asks for that
        sets[rule] = triplets, outputs
    triplets, outputs = sets[rule]
    return VoxelSet(triplets, (indices, indices if outputs is None else outputs),
                    (inside, extent_after(kind, inside, *numbers)))


def sample_set(indices: Tensor, batches: int) -> VoxelSet:
    """One output for each sample, which joins all rows of it; made once, as those of voxel_set()."""
    sets, rule = _cache.of(indices), ("samples", batches)
    if rule not in sets:
        rows = indices.shape[0]
        i = indices[:, 0].contiguous()
        j = torch.arange(rows, dtype=torch.int32, device=indices.device)
        by_out, by_in, sizes = _ops.triplet_set(i, j, torch.zeros_like(j), batches, rows, 1)
        triplets = Triplets(by_out, by_in, sizes.shape[1], batches, rows, 1)
        samples = torch.arange(batches, dtype=torch.int32, device=indices.device).reshape(-1, 1)
        sets[rule] = triplets if torch.compiler.is_compiling() else triplets.made(), samples
    triplets, samples = sets[rule]
    return VoxelSet(triplets, (indices, samples), ([], []))
