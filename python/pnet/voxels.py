"""Sets of voxels, as sparse convolution libraries define them, and convolution on arrays without a model."""

from __future__ import annotations

from ctypes import POINTER, byref, c_float, c_int32, c_void_p

import numpy

from pnet import _arrays, _handle
from pnet import _library as library


def _ints(what: str, value) -> numpy.ndarray:
    """A matrix of int32, whose rows are contiguous."""
    given = _arrays.rows(what, value)
    if given.dtype != numpy.int32:
        raise library.refuse(f"{what} is {given.dtype}, expected int32")
    return given


def _filled(array: numpy.ndarray) -> library.pnet_array_out:
    """A contiguous matrix that a function fills; it must live as long as this is used."""
    rows, width = array.shape
    return library.pnet_array_out(
        data=array.__array_interface__["data"][0], dtype=library.DTYPES["f32"], rows=rows, width=width, stride=0)


class VoxelSet(_handle.Computing):
    """Which rows of voxels a convolution joins, by which tap. It never changes, so threads may share it.

    On each axis, with the kernel's size K, stride s, padding p and dilation d, the voxels x and y meet in tap t where
    y s + t d - p = x. submanifold: outputs are the inputs; strided: outputs are all y that meet an input x; transposed: outputs
    are all x that meet an input y.

    indices   int32 [rows, 1 + axes]: the sample, then one to three indices, such as (batch, z, y, x), rows in any order
    extent    of the input, a number an axis: 0 <= index < extent
    kernel, stride, padding, dilation, output_padding   a number for all axes, or one an axis
    batches   samples; they may be empty

    Raises Error: status BAD_DATA names the rows of voxels that lie outside or are there twice.
    """

    def __init__(self, indices, extent, kernel=3, *, kind: str = "submanifold", stride=1, padding=0, dilation=1, output_padding=0,
                 batches: int = 1):
        given = _ints("indices", indices)
        axes = given.shape[1] - 1
        if not 1 <= axes <= 3:
            raise library.refuse(f"indices has {given.shape[1]} columns, expected 2, 3 or 4: the sample, then an index an axis")
        options = library.pnet_voxel_options(
            kind=library.choice("kind", library.SETS, kind), batches=library.count("batches", batches, 31, 1))
        numbers = {"extent": extent, "kernel": kernel, "stride": stride, "padding": padding, "dilation": dilation,
                   "output_padding": output_padding}
        for name, value in numbers.items():
            getattr(options, name)[:axes] = library.per_axis(name, value, axes)
        made = c_void_p()
        self.own_process()
        library.call("pnet_set_voxels", byref(_arrays.describe(given)), byref(options), byref(made))
        self._begin(made)

    def _begin(self, made: c_void_p) -> None:
        super().__init__("set", made.value, "pnet_set_free")
        self._info = library.pnet_set_info()
        self._call("pnet_set_counts", byref(self._info))

    @classmethod
    def from_triplets(cls, i, j, k, rows_out: int, rows_in: int, taps: int) -> VoxelSet:
        """The set of these triplets, int32 [n] each: row i of the output reads row j of the input by tap k."""
        columns = [_ints(name, value) for name, value in (("i", i), ("j", j), ("k", k))]
        made, found = c_void_p(), cls.__new__(cls)
        cls.own_process()
        library.call("pnet_set_triplets", *(byref(_arrays.describe(c)) for c in columns), library.count("rows_out", rows_out, 63),
                     library.count("rows_in", rows_in, 63), library.count("taps", taps, 31), None, byref(made))
        found._begin(made)
        return found

    def inverse(self) -> VoxelSet:
        """The same triplets from the outputs of this set back to its inputs, in their order."""
        made, found = c_void_p(), VoxelSet.__new__(VoxelSet)
        self._call("pnet_set_inverse", byref(made))
        found._begin(made)
        return found

    @property
    def rows_in(self) -> int:
        return self._info.rows_in

    @property
    def rows_out(self) -> int:
        return self._info.rows_out

    @property
    def taps(self) -> int:
        """The product of the kernel's sizes; tap (t0 K1 + t1) K2 + t2 belongs to place (t0, t1, t2)."""
        return self._info.taps

    @property
    def extent(self) -> tuple[int, ...]:
        """Of the outputs, a number an axis."""
        return tuple(self._info.extent_out[:self._info.axes])

    def indices(self) -> numpy.ndarray:
        """The voxels of the outputs, int32 [rows_out, 1 + axes]."""
        found = numpy.empty((self.rows_out, 1 + self._info.axes), numpy.int32)
        self._call("pnet_set_indices", found.ctypes.data_as(POINTER(c_int32)), found.size)
        return found

    def triplets(self) -> tuple[numpy.ndarray, numpy.ndarray, numpy.ndarray]:
        """i, j, k, int32 [n] each, sorted by (i, k, j)."""
        found = [numpy.empty(self._info.triplets, numpy.int32) for _ in range(3)]
        self._call("pnet_set_get_triplets", *(f.ctypes.data_as(POINTER(c_int32)) for f in found), self._info.triplets)
        return tuple(found)

    def _sum(self, name: str, left, right, options: library.pnet_conv_options, shape: tuple[int, int]) -> numpy.ndarray:
        result = numpy.empty(shape, numpy.float32)
        self._call(name, byref(_arrays.describe(left)), byref(_arrays.describe(right)), byref(options), byref(_filled(result)))
        return result

    def _weights(self, weights) -> numpy.ndarray:
        given = numpy.asarray(_arrays.to_numpy("weights", weights))
        if given.ndim != 3 or given.shape[0] != self.taps:
            raise library.refuse(f"weights is {list(given.shape)}, expected [{self.taps}, in / groups, out]")
        return _arrays.floats("weights", given, given.shape).reshape(-1, given.shape[2])

    def _features(self, name: str, value, rows: int) -> numpy.ndarray:
        given = _arrays.to_numpy(name, value)
        if given.ndim != 2 or given.shape[0] != rows:
            raise library.refuse(f"{name} is {list(given.shape)}, expected [{rows}, channels]")
        return _arrays.floats(name, given, given.shape)

    def conv(self, features, weights, bias=None, groups: int = 1) -> numpy.ndarray:
        """result[i] = bias + sum over (i, j, k) of features[j] weights[k].

        features float32 [rows_in, in], weights [taps, in / groups, out], bias [out]; returns [rows_out, out].
        """
        x, w = self._features("features", features, self.rows_in), self._weights(weights)
        options = library.pnet_conv_options(groups=library.count("groups", groups, 31, 1))
        if bias is not None:
            added = _arrays.floats("bias", bias, (w.shape[1],))
            options.bias = added.ctypes.data_as(POINTER(c_float))
        return self._sum("pnet_conv_forward", x, w, options, (self.rows_out, w.shape[1]))

    def conv_grad_input(self, gradient, weights, groups: int = 1) -> numpy.ndarray:
        """result[j] = sum over (i, j, k) of gradient[i] weights[k]^T: [rows_in, in]."""
        g, w = self._features("gradient", gradient, self.rows_out), self._weights(weights)
        options = library.pnet_conv_options(groups=library.count("groups", groups, 31, 1))
        width = w.shape[0] // self.taps * options.groups
        return self._sum("pnet_conv_grad_input", g, w, options, (self.rows_in, width))

    def conv_grad_weight(self, features, gradient, groups: int = 1) -> numpy.ndarray:
        """result[k] = sum over (i, j, k) of features[j]^T gradient[i]: [taps, in / groups, out]."""
        x, g = self._features("features", features, self.rows_in), self._features("gradient", gradient, self.rows_out)
        options = library.pnet_conv_options(groups=library.count("groups", groups, 31, 1))
        of_group = x.shape[1] // options.groups
        found = self._sum("pnet_conv_grad_weight", x, g, options, (self.taps * of_group, g.shape[1]))
        return found.reshape(self.taps, of_group, g.shape[1])
