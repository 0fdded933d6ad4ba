"""The operators of libpnet in PyTorch: pnet::voxel_set and pnet::triplet_set make sets, pnet::conv and pnet::pool use them.

A set travels as one int64 tensor, which holds all of its triplets (pnet_set_pack in pnet.h). So it is an input like any other to
autograd, torch.compile, copies and pickles; nothing else remembers it, hence nothing can be stale.

All operators compute float32 on the CPU. What calls them converts other types (pnet.torch.conv).
"""

from ctypes import POINTER, byref, c_float, c_int32, c_size_t, c_void_p
from typing import List, Optional, Tuple

import torch
from torch import Tensor
from torch.library import custom_op

from pnet import _handle
from pnet import _library as library

_DTYPES = {torch.float32: library.DTYPES["f32"], torch.int32: library.DTYPES["i32"]}


def _matrix(name: str, given: Tensor, dtype: torch.dtype) -> Tensor:
    """A contiguous matrix in host memory; of weights [taps, in, out] the rows of all taps lie behind one another."""
    if given.device.type != "cpu":
        raise library.refuse(f"{name} is on {given.device}: pnet.torch computes on the CPU only")
    if given.dtype != dtype:
        raise library.refuse(f"{name} is {given.dtype}, expected {dtype}")
    return given.detach().contiguous()


def _in(matrix: Tensor) -> library.pnet_array:
    """A matrix of _matrix(), which must live as long as this is used."""
    width = matrix.shape[-1]
    rows = matrix.shape[0] if matrix.dim() == 2 else matrix.shape[0] * matrix.shape[1]
    return library.pnet_array(data=matrix.data_ptr(), dtype=_DTYPES[matrix.dtype], rows=rows, width=width, stride=0)


def _out(matrix: Tensor) -> library.pnet_array_out:
    """The same to be filled."""
    given = _in(matrix)
    return library.pnet_array_out(data=given.data, dtype=given.dtype, rows=given.rows, width=given.width, stride=0)


def _pointer(tensor: Tensor, kind):
    """Its first element, for functions that take no void *."""
    return POINTER(kind).from_buffer(c_void_p(tensor.data_ptr()))


class _Handle:
    """A set of the library inside `with`, freed behind it."""

    def __init__(self, made: c_void_p):
        self.value = made

    def __enter__(self) -> c_void_p:
        return self.value

    def __exit__(self, *_) -> None:
        library.plain("pnet_set_free", self.value)

    def inverse(self) -> "_Handle":
        made = c_void_p()
        with self as of:
            library.call("pnet_set_inverse", of, byref(made))
        return _Handle(made)


def _compute() -> None:
    """Before each call that runs threads."""
    _handle.Computing.own_process()
    _handle.Computing.begun()


def _unpack(packed: Tensor, inverse: bool) -> "_Handle":
    """The set of a tensor of _pack(), which must live as long as this is used."""
    _compute()
    made = c_void_p()
    library.call("pnet_set_unpack", packed.data_ptr(), packed.numel() * 8, byref(made))
    return _Handle(made).inverse() if inverse else _Handle(made)


def _pack(of: c_void_p) -> Tensor:
    size = c_size_t()
    library.call("pnet_set_packed_bytes", of, byref(size))
    packed = torch.empty(size.value // 8, dtype=torch.int64)
    library.call("pnet_set_pack", of, packed.data_ptr(), size.value)
    return packed


@custom_op("pnet::voxel_set", mutates_args=())
def voxel_set(indices: Tensor, kind: str, extent: List[int], kernel: List[int], stride: List[int], padding: List[int],
              dilation: List[int], output_padding: List[int], batches: int) -> Tuple[Tensor, Tensor]:
    """pnet_set_voxels: the voxels of the outputs, int32 [rows, 1 + axes], and the set. A submanifold set has the voxels of its
    inputs, and gives none here."""
    given = _matrix("indices", indices, torch.int32)
    options = library.pnet_voxel_options(
        kind=library.choice("kind", library.SETS, kind), batches=library.count("batches", batches, 31))
    numbers = {"extent": extent, "kernel": kernel, "stride": stride, "padding": padding, "dilation": dilation,
               "output_padding": output_padding}
    for name, value in numbers.items():
        if len(value) != given.shape[1] - 1 or len(value) > 3:
            raise library.refuse(f"{name} has {len(value)} numbers for indices with {given.shape[1]} columns: expected the "
                                 "sample and one to three axes")
        getattr(options, name)[:len(value)] = [library.count(name, number, 31) for number in value]
    _compute()
    made = c_void_p()
    library.call("pnet_set_voxels", byref(_in(given)), byref(options), byref(made))
    with _Handle(made) as of:
        info = library.pnet_set_info()
        library.call("pnet_set_counts", of, byref(info))
        if kind == "submanifold":
            return given.new_empty((0, given.shape[1])), _pack(of)
        voxels = given.new_empty((info.rows_out, given.shape[1]))
        library.call("pnet_set_indices", of, _pointer(voxels, c_int32), voxels.numel())
        return voxels, _pack(of)


@voxel_set.register_fake
def _(indices, kind, extent, kernel, stride, padding, dilation, output_padding, batches):
    rows = 0 if kind == "submanifold" else torch.library.get_ctx().new_dynamic_size()
    words = torch.library.get_ctx().new_dynamic_size(min=8)
    return indices.new_empty((rows, indices.shape[1])), indices.new_empty((words,), dtype=torch.int64)


@custom_op("pnet::triplet_set", mutates_args=())
def triplet_set(i: Tensor, j: Tensor, k: Tensor, rows_out: int, rows_in: int, taps: int) -> Tensor:
    """pnet_set_triplets, of int32 [n] each."""
    columns = [_matrix(name, one, torch.int32).reshape(-1, 1) for name, one in (("i", i), ("j", j), ("k", k))]
    _compute()
    made = c_void_p()
    library.call("pnet_set_triplets", *(byref(_in(c)) for c in columns), library.count("rows_out", rows_out, 63),
                 library.count("rows_in", rows_in, 63), library.count("taps", taps, 31), None, byref(made))
    with _Handle(made) as of:
        return _pack(of)


@triplet_set.register_fake
def _(i, j, k, rows_out, rows_in, taps):
    return i.new_empty((torch.library.get_ctx().new_dynamic_size(min=8),), dtype=torch.int64)


def _options(groups: int) -> library.pnet_conv_options:
    return library.pnet_conv_options(groups=library.count("groups", groups, 31))


@custom_op("pnet::conv", mutates_args=())
def conv(features: Tensor, weight: Tensor, bias: Optional[Tensor], packed: Tensor, rows: int, inverse: bool,
         groups: int) -> Tensor:
    """pnet_conv_forward: features [rows_in, in], weight [taps, in / groups, out], bias [out], float32; returns [rows, out].
    `inverse` exchanges inputs and outputs of the set."""
    x, w = _matrix("features", features, torch.float32), _matrix("weight", weight, torch.float32)
    options, result = _options(groups), x.new_empty((rows, w.shape[2]))
    if bias is not None:
        added = _matrix("bias", bias, torch.float32)
        if added.shape != (w.shape[2],):
            raise library.refuse(f"bias is {list(added.shape)}, expected [{w.shape[2]}]")
        options.bias = _pointer(added, c_float)
    with _unpack(packed, inverse) as of:
        library.call("pnet_conv_forward", of, byref(_in(x)), byref(_in(w)), byref(options), byref(_out(result)))
    return result


@conv.register_fake
def _(features, weight, bias, packed, rows, inverse, groups):
    return features.new_empty((rows, weight.shape[2]))


@custom_op("pnet::conv_grad_input", mutates_args=())
def conv_grad_input(gradient: Tensor, weight: Tensor, packed: Tensor, rows: int, inverse: bool, groups: int) -> Tensor:
    """pnet_conv_grad_input: [rows, in] of gradient [rows_out, out]."""
    g, w = _matrix("gradient", gradient, torch.float32), _matrix("weight", weight, torch.float32)
    options, result = _options(groups), g.new_empty((rows, w.shape[1] * groups))
    with _unpack(packed, inverse) as of:
        library.call("pnet_conv_grad_input", of, byref(_in(g)), byref(_in(w)), byref(options), byref(_out(result)))
    return result


@conv_grad_input.register_fake
def _(gradient, weight, packed, rows, inverse, groups):
    return gradient.new_empty((rows, weight.shape[1] * groups))


@custom_op("pnet::conv_grad_weight", mutates_args=())
def conv_grad_weight(features: Tensor, gradient: Tensor, packed: Tensor, taps: int, inverse: bool, groups: int) -> Tensor:
    """pnet_conv_grad_weight: [taps, in / groups, out]."""
    x, g = _matrix("features", features, torch.float32), _matrix("gradient", gradient, torch.float32)
    options, result = _options(groups), x.new_empty((taps, x.shape[1] // groups, g.shape[1]))
    with _unpack(packed, inverse) as of:
        library.call("pnet_conv_grad_weight", of, byref(_in(x)), byref(_in(g)), byref(options), byref(_out(result)))
    return result


@conv_grad_weight.register_fake
def _(features, gradient, packed, taps, inverse, groups):
    return features.new_empty((taps, features.shape[1] // groups, gradient.shape[1]))


def _conv_saves(ctx, inputs, output):
    features, weight, bias, packed, rows, inverse, groups = inputs
    ctx.save_for_backward(features, weight, packed)
    ctx.rows_in, ctx.taps, ctx.inverse, ctx.groups = features.shape[0], weight.shape[0], inverse, groups


def _conv_backward(ctx, gradient):
    features, weight, packed = ctx.saved_tensors
    wanted = ctx.needs_input_grad
    to_features = to_weight = to_bias = None
    if wanted[0]:
        to_features = conv_grad_input(gradient, weight, packed, ctx.rows_in, ctx.inverse, ctx.groups)
    if wanted[1]:
        to_weight = conv_grad_weight(features, gradient, packed, ctx.taps, ctx.inverse, ctx.groups)
    if wanted[2]:
        to_bias = gradient.sum(0)
    return to_features, to_weight, to_bias, None, None, None, None


conv.register_autograd(_conv_backward, setup_context=_conv_saves)


@custom_op("pnet::pool", mutates_args=())
def pool(features: Tensor, packed: Tensor, rows: int, kind: str, inverse: bool) -> Tuple[Tensor, Tensor]:
    """pnet_pool_forward: [rows, channels] of features [rows_in, channels], and int32 of the same shape for "max", the rows that
    its numbers came from; [0, channels] for "mean" and "sum"."""
    x, number = _matrix("features", features, torch.float32), library.choice("kind", library.POOLINGS, kind)
    result = x.new_empty((rows, x.shape[1]))
    argmax = x.new_empty((rows if kind == "max" else 0, x.shape[1]), dtype=torch.int32)
    with _unpack(packed, inverse) as of:
        library.call("pnet_pool_forward", of, number, byref(_in(x)), None, byref(_out(result)),
                     byref(_out(argmax)) if kind == "max" else None)
    return result, argmax


@pool.register_fake
def _(features, packed, rows, kind, inverse):
    shape = (rows if kind == "max" else 0, features.shape[1])
    return features.new_empty((rows, features.shape[1])), features.new_empty(shape, dtype=torch.int32)


@custom_op("pnet::pool_grad", mutates_args=())
def pool_grad(gradient: Tensor, argmax: Tensor, packed: Tensor, rows: int, kind: str, inverse: bool) -> Tensor:
    """pnet_pool_backward: [rows, channels] of gradient [rows_out, channels]."""
    g, number = _matrix("gradient", gradient, torch.float32), library.choice("kind", library.POOLINGS, kind)
    came_from, result = _matrix("argmax", argmax, torch.int32), g.new_empty((rows, g.shape[1]))
    with _unpack(packed, inverse) as of:
        library.call("pnet_pool_backward", of, number, byref(_in(g)), byref(_in(came_from)) if kind == "max" else None,
                     None, byref(_out(result)))
    return result


@pool_grad.register_fake
def _(gradient, argmax, packed, rows, kind, inverse):
    return gradient.new_empty((rows, gradient.shape[1]))


def _pool_saves(ctx, inputs, output):
    features, packed, rows, kind, inverse = inputs
    ctx.save_for_backward(output[1], packed)
    ctx.mark_non_differentiable(output[1])
    ctx.rows_in, ctx.kind, ctx.inverse = features.shape[0], kind, inverse


def _pool_backward(ctx, gradient, _):
    argmax, packed = ctx.saved_tensors
    return pool_grad(gradient, argmax, packed, ctx.rows_in, ctx.kind, ctx.inverse), None, None, None, None


pool.register_autograd(_pool_backward, setup_context=_pool_saves)


def _no_second(of: str):
    def backward(ctx, *_):
        raise RuntimeError(f"{of} has no second derivative: its gradient was differentiated again (create_graph=True)")
    return backward


conv_grad_input.register_autograd(_no_second("pnet::conv"))
conv_grad_weight.register_autograd(_no_second("pnet::conv"))
pool_grad.register_autograd(_no_second("pnet::pool"))
