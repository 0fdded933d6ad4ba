"""The sparse tensor, and the sets that layers leave in it."""

from __future__ import annotations

import enum
import math
from collections.abc import Sequence

import torch
from torch import Tensor

from pnet import _library as library
from pnet.torch import _sets


def absent(module: str, reasons: dict[str, str]):
    """The __getattr__ of a module: says of names of spconv that they are not there, and why."""
    def lookup(name: str):
        if name in reasons:
            raise AttributeError(f"{module}.{name}: pnet has no such part of spconv: {reasons[name]}")
        raise AttributeError(f"module {module!r} has no attribute {name!r}")
    return lookup


class ConvAlgo(enum.Enum):
    """The algorithms of spconv. Layers take them and ignore them."""

    Native = 0
    MaskImplicitGemm = 1
    MaskSplitImplicitGemm = 2


def expand_nd(ndim: int, value, name: str = "value") -> list[int]:
    """One number an axis; `name` stands for it in messages."""
    return library.per_axis(name, value, ndim)


class IndiceData:
    """What a layer with an indice_key leaves for others: a set, and the voxels, shapes and rule that it was made of."""

    def __init__(self, made: _sets.VoxelSet, spatial_shape: list[int], rule: tuple):
        self.made, self.rule = made, rule
        self._numbers = [list(numbers) for numbers in rule[1:]]
        self.spatial_shape, self.out_spatial_shape = spatial_shape, made.extent

    @property
    def indices(self) -> Tensor:
        return self.made._voxels[0].indices

    @property
    def out_indices(self) -> Tensor:
        return self.made._voxels[1].indices

    @property
    def is_subm(self) -> bool:
        return self.rule[0] == "submanifold"

    @property
    def ksize(self) -> list[int]:
        return list(self.rule[1])

    def is_of(self, kind: str, numbers: list[list[int]], x: SparseConvTensor) -> bool:
        """Whether this is at once seen to be the set of this kind and these numbers for x; where not, check_inputs() says."""
        inputs, outputs = self.made._voxels
        return (self.rule[0] == kind and self._numbers == numbers and x.indices is inputs.indices
                and x.spatial_shape == self.spatial_shape and inputs.unchanged()
                and (outputs is inputs or outputs.unchanged()))

    def check_inputs(self, key: str, x: SparseConvTensor) -> None:
        """Raises ValueError unless x has the voxels that the set has as inputs."""
        self._check(key, x, self.made._voxels[0], self.spatial_shape)
        self.made._voxels[1].check()

    def check_outputs(self, key: str, x: SparseConvTensor) -> None:
        """The same for outputs."""
        self._check(key, x, self.made._voxels[1], self.out_spatial_shape)
        self.made._voxels[0].check()

    @staticmethod
    def _check(key: str, x: SparseConvTensor, voxels: _sets.Voxels, shape: list[int]) -> None:
        if shape != x.spatial_shape:
            raise ValueError(f"indice_key {key!r} belongs to the spatial shape {shape}, and the input has {x.spatial_shape}")
        if not voxels.same_rows(x.indices):
            raise ValueError(f"indice_key {key!r} belongs to other voxels, or another order of them, than those of the input: "
                             "layers that share a key must get the same indices")


def _tensor(name: str, value) -> None:
    """Raises Error unless it is a tensor."""
    if not isinstance(value, Tensor):
        raise library.wrong_class(name, value, "torch.Tensor: torch.from_numpy makes one of an array of NumPy")


def check_voxels(indices: Tensor, shape: Sequence[int], batch_size: int) -> None:
    """Raises Error, which names a row, unless all voxels are inside and none is there twice. On a GPU it waits, once. A graph of
    torch.compile raises RuntimeError where it runs, and only for voxels that are outside."""
    limits = [batch_size, *shape]
    if math.prod(limits) >= 1 << 63:
        raise library.refuse(f"spatial_shape is {list(shape)}, which has too many voxels")
    columns = indices.long().unbind(1)
    place = torch.zeros_like(columns[0])
    outside = torch.zeros_like(place, dtype=torch.bool)
    for column, limit in zip(columns, limits):
        place = place * limit + column
        outside = outside | (column < 0) | (column >= limit)
    if torch.compiler.is_compiling():
        torch._assert_async(~outside.any(), "indices of voxels lie outside of spatial_shape and batch_size")
        return
    ordered, rows = place.sort(stable=True)
    twice = ordered[1:] == ordered[:-1]
    is_outside, is_twice = torch.stack([outside.any(), twice.any()]).tolist()
    if is_outside:
        row = int(outside.nonzero()[0])
        raise library.refuse_data(f"indices: row {row}: the voxel {indices[row].tolist()} is outside of {batch_size} samples of "
                                  f"{list(shape)}")
    if is_twice:
        row, where = rows[1:][twice].min(0)
        raise library.refuse_data(f"indices: rows {int(rows[:-1][twice][where])} and {int(row)} are the same voxel")


class SparseConvTensor:
    """Features of voxels.

    features       [N, C]
    indices        int32 [N, 1 + ndim]: the sample, then the indices, such as z, y, x
    spatial_shape  a number an axis: 0 <= index < spatial_shape
    batch_size     samples; some may have no voxels
    grid, voxel_num, benchmark and what follows are kept and ignored

    Sets of its voxels, which layers make, are found by other layers as long as a result of one of them is there; keep_sets()
    keeps them as long as this tensor.
    """

    def __init__(self, features: Tensor, indices: Tensor, spatial_shape, batch_size: int, grid=None, voxel_num=None,
                 indice_dict: dict | None = None, benchmark: bool = False, permanent_thrust_allocator: bool = False,
                 enable_timer: bool = False, force_algo=None):
        _tensor("features", features)
        _tensor("indices", indices)
        if features.dim() != 2 or indices.dim() != 2:
            raise library.refuse(f"features is {list(features.shape)} and indices {list(indices.shape)}, expected [N, C] and "
                                 "[N, 1 + ndim]")
        if indices.dtype != torch.int32:
            raise library.refuse(f"indices is {indices.dtype}, expected torch.int32")
        self._features = features
        self.indices = indices
        self.spatial_shape = library.per_axis("spatial_shape", spatial_shape, indices.shape[1] - 1)
        self.batch_size = library.count("batch_size", batch_size, 31, 1)
        self.indice_dict = {} if indice_dict is None else indice_dict
        self.grid, self.voxel_num, self.benchmark, self.force_algo = grid, voxel_num, benchmark, force_algo
        self.benchmark_record = {}
        self._voxels: _sets.Voxels | None = None
        self._sets: tuple | None = None  # sets that end with this tensor

    def __getstate__(self) -> dict:
        return {**self.__dict__, "_voxels": None, "_sets": None}  # a copy makes its own

    def __repr__(self) -> str:
        return f"SparseConvTensor[shape={list(self._features.shape)}, spatial_shape={self.spatial_shape}]"

    @property
    def features(self) -> Tensor:
        return self._features

    @features.setter
    def features(self, _) -> None:
        raise ValueError("features cannot be assigned: x = x.replace_feature(features) makes another tensor")

    def _known(self) -> _sets.Voxels:
        """Its voxels as they are now, with the sets that were made of them."""
        if torch.compiler.is_compiling():
            return _sets.Voxels(self.indices)
        found = self._voxels
        if found is None or found.indices is not self.indices or not found.unchanged():
            self._voxels = found = _sets.Voxels(self.indices, found is not None and found.kept)
            self._sets = None
        return found

    def keep_sets(self) -> SparseConvTensor:
        """From now on sets of these voxels, and of those that layers make of them, last as long as this tensor: for a CUDA graph,
        or voxels that a network gets again and again. Returns the tensor itself."""
        self._known().keep()
        return self

    def drop_sets(self) -> None:
        """Forgets sets of these voxels and of those that layers made of them, those with an indice_key too. Results of layers
        keep what their backward needs."""
        self._known().drop()
        self._sets, self.indice_dict = None, {}

    def _with(self, features: Tensor, indices: Tensor, spatial_shape, indice_dict: dict,
              voxels: _sets.Voxels | None = None, hold: dict | None = None) -> SparseConvTensor:
        """voxels   those of `indices`, whose sets the result holds
        hold     sets of the input's voxels, which it holds too"""
        if torch.compiler.is_compiling():  # PyTorch 2.4 does not look into __new__
            made = SparseConvTensor(features, indices, spatial_shape, self.batch_size, self.grid, self.voxel_num, indice_dict,
                                    self.benchmark, force_algo=self.force_algo)
            made.benchmark_record = self.benchmark_record
            return made
        made = SparseConvTensor.__new__(SparseConvTensor)
        made._features, made.indices, made.spatial_shape, made.indice_dict = features, indices, spatial_shape, indice_dict
        made.batch_size, made.grid, made.voxel_num, made.benchmark = self.batch_size, self.grid, self.voxel_num, self.benchmark
        made.force_algo, made.benchmark_record = self.force_algo, self.benchmark_record
        made._voxels = voxels
        if voxels is self._voxels and hold is None:
            made._sets = self._sets
        else:
            made._sets = None if voxels is None else (voxels.sets(), hold)
        return made

    def _are_inside(self) -> SparseConvTensor:
        """Notes that its voxels need no check; returns the tensor itself."""
        self._known().inside.add((tuple(self.spatial_shape), self.batch_size))
        return self

    def _check_voxels(self) -> None:
        """check_voxels(), unless they are as they were in a check or in a set."""
        limits = tuple(self.spatial_shape), self.batch_size
        if not self._known().is_inside(limits):
            check_voxels(self.indices, *limits)
            self._are_inside()

    def replace_feature(self, feature: Tensor) -> SparseConvTensor:
        """The same voxels with other features."""
        _tensor("feature", feature)
        if torch.compiler.is_compiling():
            return self._with(feature, self.indices, self.spatial_shape, self.indice_dict)
        if self._voxels is None:
            self._voxels = _sets.Voxels(self.indices)
        return self._with(feature, self.indices, self.spatial_shape, self.indice_dict, self._voxels)

    def shadow_copy(self) -> SparseConvTensor:
        """Another tensor with the same members."""
        return self.replace_feature(self.features)

    def select_by_index(self, valid_indices: Tensor) -> SparseConvTensor:
        """Some of the voxels: a mask or numbers of rows."""
        return self._with(self.features[valid_indices], self.indices[valid_indices], self.spatial_shape, {})

    def minus(self) -> SparseConvTensor:
        return self.replace_feature(-self.features)

    @classmethod
    def from_dense(cls, x: Tensor) -> SparseConvTensor:
        """The voxels of a dense tensor [batch, .., C] that have a channel that is not 0."""
        sparse = x.to_sparse(x.dim() - 1)
        made = cls(sparse.values(), sparse.indices().T.contiguous().int(), list(x.shape[1:-1]), x.shape[0])
        return made._are_inside()

    @property
    def is_quantized(self) -> bool:
        return False

    @property
    def spatial_size(self) -> int:
        return math.prod(self.spatial_shape)

    @property
    def sparity(self) -> float:
        """The share of voxels that are there."""
        return self.indices.shape[0] / self.spatial_size / self.batch_size

    def find_indice_pair(self, key: str | None) -> IndiceData | None:
        """What the layers with this indice_key left."""
        return None if key is None else self.indice_dict.get(key)

    def dense(self, channels_first: bool = True) -> Tensor:
        """[batch, C, ..], or [batch, .., C]: 0 where no voxel is. Raises Error, which names a row, where a voxel is outside or
        there twice."""
        self._check_voxels()
        at = self.indices.to(self.features.device).long()
        row = at[:, 0]
        for axis, extent in enumerate(self.spatial_shape):
            row = row * extent + at[:, axis + 1]
        channels = self.features.shape[1]
        whole = self.features.new_zeros((self.batch_size * self.spatial_size, channels)).index_copy(0, row, self.features)
        found = whole.reshape(self.batch_size, *self.spatial_shape, channels)
        return found.movedim(-1, 1).contiguous() if channels_first else found

    def _other(self, other) -> Tensor:
        if isinstance(other, Tensor):
            return other
        if not isinstance(other, SparseConvTensor):
            raise TypeError(f"a SparseConvTensor cannot be added to {type(other).__name__}")
        check_same(self, other)
        return other.features

    def __add__(self, other) -> SparseConvTensor:
        return self.replace_feature(self.features + self._other(other))

    __radd__ = __add__


def check_same(x: SparseConvTensor, other: SparseConvTensor) -> None:
    """Raises ValueError unless both have the same voxels in the same order."""
    if (x.spatial_shape, x.batch_size) != (other.spatial_shape, other.batch_size) or not (
            x.indices is other.indices or torch.equal(x.indices, other.indices)):
        raise ValueError("the tensors have other voxels, or another order of them: functional.sparse_add adds such tensors")
