"""Arrays of a program as the library takes them: without a copy where rows are contiguous, whatever lies between them. Those in
the memory of a GPU have __cuda_array_interface__, as tensors of PyTorch and arrays of CuPy."""

from __future__ import annotations

from ctypes import POINTER, c_float, c_void_p, cast
from typing import NamedTuple

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
        given = numpy.asarray(value)
    except (TypeError, ValueError, BufferError, RuntimeError) as why:
        raise library.refuse(f"{name}: {why}") from why
    if given.dtype == object and not given.ndim:  # what NumPy makes of anything
        raise library.wrong_class(name, value, "an array")
    return given


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


class OnGPU(NamedTuple):
    """An array in the memory of a GPU."""

    data: int | None
    dtype: str
    shape: tuple[int, ...]
    steps: tuple[int, ...]  # from one element to the next, in elements, by dimension
    owner: object


def lies_on_gpu(value) -> bool:
    """Does it say so? Tensors of PyTorch on the CPU have the attribute, and raise AttributeError."""
    return not isinstance(value, numpy.ndarray) and hasattr(type(value), "__cuda_array_interface__") and (
        not hasattr(value, "is_cuda") or value.is_cuda)


def on_gpu(name: str, value) -> OnGPU:
    """An array with __cuda_array_interface__, as it lies there."""
    try:
        given = value.__cuda_array_interface__
    except (AttributeError, RuntimeError, TypeError) as why:
        raise library.refuse(f"{name}: {why}") from why
    dtype = numpy.dtype(given["typestr"])
    if not dtype.isnative or dtype.name not in _DTYPES or given.get("mask") is not None:
        raise library.refuse(f"{name} has the type {dtype}, expected float32, or int32 or int64 of classes and row splits")
    shape, steps = tuple(given["shape"]), given.get("strides")
    if steps is None:
        steps = [dtype.itemsize * int(numpy.prod(shape[i + 1:], dtype=numpy.int64)) for i in range(len(shape))]
    return OnGPU(given["data"][0] or None, dtype.name, shape, tuple(s // dtype.itemsize for s in steps), value)


def rows_on_gpu(name: str, value) -> OnGPU:
    """A matrix [rows, width] of an array on a GPU: of [rows], [rows, width] or [rows, 4, 4]."""
    given = on_gpu(name, value)
    if not 1 <= len(given.shape) <= 3:
        raise library.refuse(f"{name} has {len(given.shape)} dimensions, expected [rows, width]")
    count, width = given.shape[0], int(numpy.prod(given.shape[1:], dtype=numpy.int64))
    inner = 1
    for size, step in zip(given.shape[:0:-1], given.steps[:0:-1]):
        if size > 1 and step != inner:
            raise library.refuse(f"{name}: rows of arrays on a GPU are contiguous")
        inner *= size
    return given._replace(shape=(count, width), steps=(given.steps[0] if count > 1 else width, 1))


def describe(matrix: numpy.ndarray | OnGPU) -> library.pnet_array:
    """A matrix that rows() or rows_on_gpu() made; it must live as long as this is used."""
    count, width = matrix.shape
    if isinstance(matrix, OnGPU):
        dtype = library.DTYPES[_DTYPES[matrix.dtype]]
        return library.pnet_array(data=matrix.data, dtype=dtype, rows=count, width=width, stride=matrix.steps[0])
    return library.pnet_array(
        data=matrix.__array_interface__["data"][0],
        dtype=library.DTYPES[_DTYPES[matrix.dtype.name]],
        rows=count,
        width=width,
        stride=matrix.strides[0] // matrix.dtype.itemsize if count > 1 else 0,
    )


def floats(name: str, value, shape: tuple[int, ...], there: bool = False) -> numpy.ndarray | OnGPU:
    """A contiguous float32 array of this shape; on a GPU, if `there`."""
    if there and lies_on_gpu(value):
        return _filled(name, on_gpu(name, value), shape)
    given = to_numpy(name, value)
    if given.dtype != numpy.float32 or given.shape != shape:
        raise library.refuse(f"{name} is {given.dtype} {list(given.shape)}, expected float32 {list(shape)}")
    return numpy.ascontiguousarray(given)


def _filled(name: str, given: OnGPU, shape: tuple[int, ...]) -> OnGPU:
    if given.dtype != "float32" or given.shape != shape:
        raise library.refuse(f"{name} is {given.dtype} {list(given.shape)}, expected float32 {list(shape)}")
    inner = 1
    for size, step in zip(shape[::-1], given.steps[::-1]):
        if size > 1 and step != inner:
            raise library.refuse(f"{name} is not contiguous")
        inner *= size
    return given


def to_fill(name: str, out, shape: tuple[int, ...], there: bool) -> numpy.ndarray | OnGPU:
    """What a call fills: `out`, a contiguous float32 array of this shape, or a new one on the host."""
    if out is None:
        if there:
            raise library.refuse(f"{name}: `out` is missing: arrays of this session lie on its GPU")
        return numpy.empty(shape, numpy.float32)
    if there and lies_on_gpu(out):
        return _filled(name, on_gpu(name, out), shape)
    if not isinstance(out, numpy.ndarray) or out.dtype != numpy.float32 or out.shape != shape or not out.flags.carray:
        raise library.refuse(f"{name}: `out` is no contiguous float32 array {list(shape)}")
    return out


def values(matrices: dict[str, numpy.ndarray | OnGPU]):
    """Matrices by name, as the library takes them; they must live as long as this is used."""
    return (library.pnet_value * len(matrices))(
        *[library.pnet_value(library.encode("name", name), describe(m)) for name, m in matrices.items()])


def count(array: numpy.ndarray | OnGPU) -> int:
    """The number of elements."""
    return int(numpy.prod(array.shape, dtype=numpy.int64))


def pointer(array: numpy.ndarray | OnGPU, kind=c_float):
    """The first element of a contiguous float32 array, or one of `kind`, which must live as long as this is used."""
    if isinstance(array, OnGPU):
        return cast(c_void_p(array.data), POINTER(kind))
    return array.ctypes.data_as(POINTER(kind))
