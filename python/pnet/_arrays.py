"""Arrays of a program as the library takes them: without a copy where rows are contiguous, whatever lies between them."""

from __future__ import annotations

from ctypes import POINTER, c_float

import numpy

from pnet import _library as library

_DTYPES = {"float32": "f32", "int32": "i32", "int64": "i64"}


def to_numpy(name: str, value) -> numpy.ndarray:
    """An array in host memory, as it lies there: of NumPy, or of anything with __array__ or DLPack."""
    if isinstance(value, numpy.ndarray):
        return value
    try:
        if hasattr(value, "__dlpack__") and not hasattr(value, "__array__"):
            return numpy.from_dlpack(value)
        return numpy.asarray(value)
    except (TypeError, ValueError, BufferError, RuntimeError) as why:
        raise library.refuse(f"{name}: {why}") from why


def _matrix(name: str, given: numpy.ndarray) -> numpy.ndarray:
    """[rows, width] of [rows], [rows, width] or [rows, 4, 4]."""
    if given.ndim == 1:
        return given[:, numpy.newaxis]
    if given.ndim == 3:
        return given.reshape(len(given), given.shape[1] * given.shape[2])
    if given.ndim != 2:
        raise library.refuse(f"{name} has {given.ndim} dimensions, expected [rows, width]")
    return given


def rows(name: str, value) -> numpy.ndarray:
    """A matrix [rows, width] of a type of the library, whose rows are contiguous and do not overlap."""
    given = _matrix(name, to_numpy(name, value))
    if not given.dtype.isnative or given.dtype.name not in _DTYPES:
        raise library.refuse(f"{name} has the type {given.dtype}, expected float32, or int32 or int64 of classes and row splits")
    item, (count, width) = given.dtype.itemsize, given.shape
    apart = width <= 1 or given.strides[1] == item
    stepped = count <= 1 or (given.strides[0] % item == 0 and given.strides[0] >= width * item)
    if apart and stepped and given.flags.aligned:
        return given
    return numpy.ascontiguousarray(given)


def describe(matrix: numpy.ndarray) -> library.pnet_array:
    """A matrix that rows() made; it must live as long as this is used."""
    count, width = matrix.shape
    return library.pnet_array(
        data=matrix.__array_interface__["data"][0],
        dtype=library.DTYPES[_DTYPES[matrix.dtype.name]],
        rows=count,
        width=width,
        stride=matrix.strides[0] // matrix.dtype.itemsize if count > 1 else 0,
    )


def floats(name: str, value, shape: tuple[int, ...]) -> numpy.ndarray:
    """A contiguous float32 array of this shape."""
    given = to_numpy(name, value)
    if given.dtype != numpy.float32 or given.shape != shape:
        raise library.refuse(f"{name} is {given.dtype} {list(given.shape)}, expected float32 {list(shape)}")
    return numpy.ascontiguousarray(given)


def values(matrices: dict[str, numpy.ndarray]):
    """Matrices by name, as the library takes them; they must live as long as this is used."""
    return (library.pnet_value * len(matrices))(
        *[library.pnet_value(library.encode("name", name), describe(m)) for name, m in matrices.items()])


def pointer(array: numpy.ndarray, kind=c_float):
    """The first element of a contiguous float32 array, or one of `kind`, which must live as long as this is used."""
    return array.ctypes.data_as(POINTER(kind))
