"""Sets of voxels, and what keeps them for other layers."""

from __future__ import annotations

import contextlib
import weakref
from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from pnet import _library as library
from pnet.torch import _ops, _sums
from pnet.torch._calls import Triplets


def version_of(tensor: Tensor) -> int | None:
    """Changes when the tensor is written to; None: PyTorch does not know (inference tensors, while it compiles)."""
    if torch.compiler.is_compiling() or tensor.is_inference():
        return None
    return tensor._version


@contextlib.contextmanager
def apart():
    """What is made inside lasts: it is no part of a graph of autograd, and no inference tensor, which no later training could
    save for its backward."""
    with torch.inference_mode(False), torch.no_grad():
        yield


class Stamp:
    """How a tensor was, to find out whether it was written to since.

    PyTorch counts writes, but not those through NumPy, `.data`, or programs that it does not know of. On the CPU values are
    compared too. On a GPU that would wait for it, so the count decides alone.

    sure   whether writes are found at all: not while PyTorch compiles, nor those to inference tensors on a GPU
    """

    def __init__(self, tensor: Tensor):
        self._version = version_of(tensor)
        self._values = tensor.detach().clone() if tensor.device.type == "cpu" and _sums.is_direct(tensor) else None
        self.sure = self._version is not None or self._values is not None

    def changed(self, tensor: Tensor) -> bool:
        """Whether it is seen to have other values."""
        if self._version is not None and version_of(tensor) not in (None, self._version):
            return True
        return self._values is not None and _sums.is_direct(tensor) and not torch.equal(self._values, tensor)


class _Kept(dict):
    """Sets of the same voxels by rule: triplets, and the voxels of the outputs, None: those of the inputs."""


class Voxels:
    """The voxels of sparse tensors, and the sets that layers made of them.

    It finds a set as long as a result holds sets(): so sets end with what was computed with them, as those of spconv do with
    their indice_dict, however long the indices are there. keep() makes them last as long as the voxels.
    """

    def __init__(self, indices: Tensor, kept: bool = False):
        self.indices, self._stamp = indices, Stamp(indices)
        self.inside: set[tuple] = set()  # extents and numbers of samples that they are known to lie in, each once
        self._kept = _Kept() if kept else None
        self._known: weakref.ref | None = None

    @property
    def kept(self) -> bool:
        return self._kept is not None

    def is_inside(self, limits: tuple) -> bool:
        """Whether they are known to lie inside of (extent, samples), each once."""
        return self._stamp.sure and limits in self.inside

    def unchanged(self) -> bool:
        """Whether the indices are not seen to have been written to."""
        return not self._stamp.changed(self.indices)

    def check(self) -> None:
        if not self.unchanged():
            raise ValueError("the indices of voxels were written to in place after a set was made of them: give a new tensor")

    def same_rows(self, given: Tensor) -> bool:
        """Whether `given` has these voxels in this order. Raises ValueError where they are no longer known."""
        self.check()
        return self.indices is given or torch.equal(self.indices, given)

    def sets(self) -> _Kept:
        """What find() looks into, for results to hold."""
        found = self._kept
        if found is None and self._known is not None:
            found = self._known()
        if found is None:
            found = _Kept()
            self._known = weakref.ref(found)
        return found

    def keep(self) -> None:
        if not self.kept:
            self._kept = self.sets()
        for _, outputs in self._kept.values():
            if outputs is not None:
                outputs.keep()

    def drop(self) -> None:
        """Forgets all sets, and those of their outputs."""
        known, self._kept, self._known = self.sets(), None, None
        for _, outputs in known.values():
            if outputs is not None:
                outputs.drop()

    def find(self, rule: tuple, make: Callable[[], tuple[Triplets, Tensor | None]]) -> tuple[Triplets, Voxels]:
        """The set by this rule and the voxels of its outputs; what `make` gives, where it is not there."""
        if torch.compiler.is_compiling():
            triplets, outputs = make()
            return triplets, self if outputs is None else Voxels(outputs)
        sets = self.sets() if self._stamp.sure else {}
        known = sets.get(rule)
        if known is None or not (known[1] is None or known[1].unchanged()):  # whoever got the outputs may have written to them
            with apart():
                triplets, outputs = make()
            known = sets[rule] = triplets, None if outputs is None else Voxels(outputs, self.kept)
        return known[0], self if known[1] is None else known[1]

    def __getstate__(self) -> dict:
        self.check()
        return {"indices": self.indices}

    def __setstate__(self, state: dict) -> None:
        self.__init__(**state)


class VoxelSet:
    """Which rows of voxels a convolution or a pool joins, by which tap: made by voxel_set().

    indices           int32 [rows_out, 1 + axes], the voxels of the outputs
    extent            of the outputs, a number an axis
    rows_in, rows_out, taps
    """

    def __init__(self, triplets: Triplets, voxels: tuple[Voxels, Voxels], extents: tuple[list[int], list[int]]):
        self._triplets = triplets
        self._voxels, self._extents = voxels, extents  # of inputs and outputs

    @property
    def indices(self) -> Tensor:
        return self._voxels[1].indices

    @property
    def extent(self) -> list[int]:
        return self._extents[1]

    @property
    def rows_in(self) -> int:
        return self._voxels[0].indices.shape[0]

    @property
    def rows_out(self) -> int:
        return self._voxels[1].indices.shape[0]

    @property
    def taps(self) -> int:
        return self._triplets.taps

    def inverse(self) -> VoxelSet:
        """The same triplets from the outputs back to the inputs, in their order."""
        return VoxelSet(self._triplets.inverse(), self._voxels[::-1], self._extents[::-1])

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
    """The set of voxels that a kernel joins, made anew by each call: a program keeps it as long as it needs it.

    On each axis, with the kernel's size K, stride s, padding p and dilation d, the voxels x and y meet in tap t where
    y s + t d - p = x. submanifold: outputs are the inputs; strided: outputs are all y that meet an input x; transposed: outputs
    are all x that meet an input y.

    indices   int32 [rows, 1 + axes]: the sample, then one to three indices, such as (batch, z, y, x), rows in any order
    extent    of the input, a number an axis: 0 <= index < extent
    kernel, stride, padding, dilation, output_padding   a number for all axes, or one an axis
    batches   samples; they may be empty

    Raises pnet.Error, which names rows of voxels that lie outside or are there twice.
    """
    if indices.dim() != 2 or not 2 <= indices.shape[1] <= 4:
        raise library.refuse(f"indices is {list(indices.shape)}, expected [rows, 2 to 4]: the sample, then one to three indices")
    return set_of(Voxels(indices), extent, kernel, kind, stride, padding, dilation, output_padding, batches)


def set_of(voxels: Voxels, extent, kernel, kind: str, stride, padding, dilation, output_padding, batches: int) -> VoxelSet:
    """The set by voxel_set()'s arguments, which is found where these voxels know it."""
    indices = voxels.indices
    count = indices.shape[1] - 1
    library.choice("kind", library.SETS, kind)
    batches = library.count("batches", batches, 31, 1)
    numbers = [library.per_axis(name, value, count) for name, value in (
        ("kernel", kernel), ("stride", stride), ("padding", padding), ("dilation", dilation), ("output_padding", output_padding))]
    inside = library.per_axis("extent", extent, count)

    def make() -> tuple[Triplets, Tensor | None]:
        # as _sums.conv(): an operator takes as long as the set of some thousand voxels
        make_set = _ops.make_voxel_set if _sums.is_direct(indices) else _ops.voxel_set
        outputs, by_out, by_in, sizes = make_set(indices, kind, inside, *numbers, batches)
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
        return triplets, outputs

    triplets, outputs = voxels.find((kind, batches, *map(tuple, (inside, *numbers))), make)
    after = extent_after(kind, inside, *numbers)
    voxels.inside.add((tuple(inside), batches))
    outputs.inside.add((tuple(after), batches))
    return VoxelSet(triplets, (voxels, outputs), (inside, after))


def sample_set(voxels: Voxels, batches: int) -> VoxelSet:
    """One output for each sample, which joins all rows of it; found where these voxels know it."""
    indices = voxels.indices

    def make() -> tuple[Triplets, Tensor]:
        rows = indices.shape[0]
        i = indices[:, 0].contiguous()
        j = torch.arange(rows, dtype=torch.int32, device=indices.device)
        by_out, by_in, sizes = _ops.triplet_set(i, j, torch.zeros_like(j), batches, rows, 1)
        triplets = Triplets(by_out, by_in, sizes.shape[1], batches, rows, 1)
        samples = torch.arange(batches, dtype=torch.int32, device=indices.device).reshape(-1, 1)
        return triplets if torch.compiler.is_compiling() else triplets.made(), samples

    triplets, samples = voxels.find(("samples", batches), make)
    return VoxelSet(triplets, (voxels, samples), ([], []))
