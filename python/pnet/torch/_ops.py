"""The operators pnet:: of PyTorch, for torch.compile, torch.export and whatever else looks into a program; programs that run as
they are written take the shorter way of _sums.py.

A set travels as tensors: its two blocks (pnet_set_pack in pnet.h), int64, and a tensor without elements whose second size is the
number of triplets. So it is an input like any other to autograd, torch.compile, copies and pickles; nothing else remembers it,
hence nothing can be stale.

On the CPU operators compute float32, on a GPU also types with 16 bits. What calls them converts others (_sums.py).
"""

from ctypes import POINTER, c_int32, c_void_p
from typing import List, Optional, Tuple

import torch
from torch import Tensor
from torch.library import custom_op

from pnet import _library as library
from pnet.torch import _calls, _device


def _in(name: str, given: Tensor, dtype: torch.dtype) -> tuple[Tensor, library.pnet_array]:
    """A matrix, or a column, and what says so to the library; the tensor must live as long as that is used."""
    _device.check(given.device)
    found = _calls.matrix(name, given.detach(), dtype, given.device)
    rows, width = found.shape if found.dim() == 2 else (found.shape[0], 1)
    return found, library.pnet_array(data=found.data_ptr(), dtype=_calls._DTYPES[dtype], rows=rows, width=width, stride=0)


class _Handle:
    """A set of the library inside `with`, freed behind it."""

    def __init__(self, made: c_void_p):
        self.value = made

    def __enter__(self) -> c_void_p:
        return self.value

    def __exit__(self, *_) -> None:
        library.plain("pnet_set_free", self.value)


def _sizes(like: Tensor, count: int) -> Tensor:
    return like.new_empty((0, count))


def make_voxel_set(indices: Tensor, kind: str, extent: List[int], kernel: List[int], stride: List[int], padding: List[int],
                   dilation: List[int], output_padding: List[int], batches: int) -> Tuple[Tensor, Tensor, Tensor, Tensor]:
    """pnet_set_voxels: the voxels of the outputs, int32 [rows, 1 + axes], and the set: blocks by output and by input, and [0,
    triplets]. A submanifold set has the voxels of its inputs, and gives none here. On a GPU it waits for the current stream."""
    given, array = _in("indices", indices, torch.int32)
    options = library.pnet_voxel_options(
        kind=library.choice("kind", library.SETS, kind), batches=library.count("batches", batches, 31, 1))
    numbers = {"extent": extent, "kernel": kernel, "stride": stride, "padding": padding, "dilation": dilation,
               "output_padding": output_padding}
    for name, value in numbers.items():
        if len(value) != given.shape[1] - 1 or len(value) > 3:
            raise library.refuse(f"{name} has {len(value)} numbers for indices with {given.shape[1]} columns: expected the "
                                 "sample and one to three axes")
        getattr(options, name)[:len(value)] = [library.count(name, number, 31, library.LEAST.get(name, 0)) for number in value]
    _device.place(given.device, options)
    _calls.computing()
    with _Handle(_device.make("pnet_set_voxels", array, options)) as of:
        info = library.pnet_set_info()
        library.call("pnet_set_counts", of, info)
        voxels = given.new_empty((0 if kind == "submanifold" else info.rows_out, given.shape[1]))
        if kind != "submanifold":
            library.call("pnet_set_indices", of, POINTER(c_int32).from_buffer(c_void_p(voxels.data_ptr())), voxels.numel())
        by_out, by_in, count = _calls.pack(of, given.device)
        return voxels, by_out, by_in, _sizes(by_out, count)


voxel_set = custom_op("pnet::voxel_set", mutates_args=())(make_voxel_set)


def _fake_set(like: Tensor) -> Tuple[Tensor, Tensor, Tensor]:
    size = torch.library.get_ctx().new_dynamic_size
    blocks = [like.new_empty((size(min=8),), dtype=torch.int64) for _ in range(2)]
    return *blocks, _sizes(blocks[0], size())


@voxel_set.register_fake
def _(indices, kind, extent, kernel, stride, padding, dilation, output_padding, batches):
    rows = 0 if kind == "submanifold" else torch.library.get_ctx().new_dynamic_size()
    return indices.new_empty((rows, indices.shape[1])), *_fake_set(indices)


@custom_op("pnet::triplet_set", mutates_args=())
def triplet_set(i: Tensor, j: Tensor, k: Tensor, rows_out: int, rows_in: int, taps: int) -> Tuple[Tensor, Tensor, Tensor]:
    """pnet_set_triplets, of int32 [n] each: the set, as voxel_set gives it. On a GPU it waits for the current stream."""
    columns = [_in(name, one, torch.int32) for name, one in (("i", i), ("j", j), ("k", k))]
    options = library.pnet_triplet_options()
    _device.place(i.device, options)
    _calls.computing()
    made = _device.make("pnet_set_triplets", *(array for _, array in columns), library.count("rows_out", rows_out, 63),
                        library.count("rows_in", rows_in, 63), library.count("taps", taps, 31), options)
    with _Handle(made) as of:
        by_out, by_in, count = _calls.pack(of, i.device)
        return by_out, by_in, _sizes(by_out, count)


@triplet_set.register_fake
def _(i, j, k, rows_out, rows_in, taps):
    return _fake_set(i)


@custom_op("pnet::conv", mutates_args=())
def conv(features: Tensor, weight: Tensor, bias: Optional[Tensor], by_out: Tensor, by_in: Tensor, triplets: int, rows: int,
         groups: int) -> Tensor:
    """pnet_conv_forward: features [rows_in, in], weight float32 [taps, in / groups, out], bias [out]; returns [rows, out] in the
    type of the features. The blocks exchanged exchange inputs and outputs of the set."""
    of = _calls.Triplets(by_out, by_in, triplets, rows, features.shape[0], weight.shape[0])
    return _calls.forward(of, features, weight, bias, groups)


@conv.register_fake
def _(features, weight, bias, by_out, by_in, triplets, rows, groups):
    return features.new_empty((rows, weight.shape[2]))


@custom_op("pnet::conv_grad_input", mutates_args=())
def conv_grad_input(gradient: Tensor, weight: Tensor, by_out: Tensor, by_in: Tensor, triplets: int, rows: int,
                    groups: int) -> Tensor:
    """pnet_conv_grad_input: [rows, in] of gradient [rows_out, out]."""
    of = _calls.Triplets(by_out, by_in, triplets, gradient.shape[0], rows, weight.shape[0])
    return _calls.grad_input(of, gradient, weight, groups)


@conv_grad_input.register_fake
def _(gradient, weight, by_out, by_in, triplets, rows, groups):
    return gradient.new_empty((rows, weight.shape[1] * groups))


@custom_op("pnet::conv_grad_weight", mutates_args=())
def conv_grad_weight(features: Tensor, gradient: Tensor, by_out: Tensor, by_in: Tensor, triplets: int, taps: int,
                     groups: int) -> Tensor:
    """pnet_conv_grad_weight: float32 [taps, in / groups, out]."""
    of = _calls.Triplets(by_out, by_in, triplets, gradient.shape[0], features.shape[0], taps)
    return _calls.grad_weight(of, features, gradient, groups)


@conv_grad_weight.register_fake
def _(features, gradient, by_out, by_in, triplets, taps, groups):
    return features.new_empty((taps, features.shape[1] // groups, gradient.shape[1]), dtype=torch.float32)


def _conv_saves(ctx, inputs, output):
    features, weight, bias, by_out, by_in, triplets, rows, groups = inputs
    ctx.save_for_backward(features, weight, by_out, by_in)
    ctx.triplets, ctx.rows_in, ctx.taps, ctx.groups = triplets, features.shape[0], weight.shape[0], groups


def _conv_backward(ctx, gradient):
    features, weight, *blocks = ctx.saved_tensors
    wanted = ctx.needs_input_grad
    to_features = to_weight = to_bias = None
    if wanted[0]:
        to_features = conv_grad_input(gradient, weight, *blocks, ctx.triplets, ctx.rows_in, ctx.groups)
    if wanted[1]:
        to_weight = conv_grad_weight(features, gradient, *blocks, ctx.triplets, ctx.taps, ctx.groups)
    if wanted[2]:
        to_bias = gradient.sum(0, dtype=torch.float32)
    return to_features, to_weight, to_bias, None, None, None, None, None


conv.register_autograd(_conv_backward, setup_context=_conv_saves)


@custom_op("pnet::pool", mutates_args=())
def pool(features: Tensor, by_out: Tensor, by_in: Tensor, triplets: int, taps: int, rows: int,
         kind: str) -> Tuple[Tensor, Tensor]:
    """pnet_pool_forward: [rows, channels] of features [rows_in, channels], and int32 of the same shape for "max", the rows that
    its numbers came from; [0, channels] for "mean" and "sum"."""
    of = _calls.Triplets(by_out, by_in, triplets, rows, features.shape[0], taps)
    return _calls.pool(of, features, kind)


@pool.register_fake
def _(features, by_out, by_in, triplets, taps, rows, kind):
    shape = (rows if kind == "max" else 0, features.shape[1])
    return features.new_empty((rows, features.shape[1])), features.new_empty(shape, dtype=torch.int32)


@custom_op("pnet::pool_grad", mutates_args=())
def pool_grad(gradient: Tensor, argmax: Tensor, by_out: Tensor, by_in: Tensor, triplets: int, taps: int, rows: int,
              kind: str) -> Tensor:
    """pnet_pool_backward: [rows, channels] of gradient [rows_out, channels]."""
    of = _calls.Triplets(by_out, by_in, triplets, gradient.shape[0], rows, taps)
    return _calls.pool_grad(of, gradient, argmax, kind)


@pool_grad.register_fake
def _(gradient, argmax, by_out, by_in, triplets, taps, rows, kind):
    return gradient.new_empty((rows, gradient.shape[1]))


def _pool_saves(ctx, inputs, output):
    features, by_out, by_in, triplets, taps, rows, kind = inputs
    ctx.save_for_backward(output[1], by_out, by_in)
    ctx.mark_non_differentiable(output[1])
    ctx.triplets, ctx.taps, ctx.rows_in, ctx.kind = triplets, taps, features.shape[0], kind


def _pool_backward(ctx, gradient, _):
    argmax, *blocks = ctx.saved_tensors
    to_features = pool_grad(gradient, argmax, *blocks, ctx.triplets, ctx.taps, ctx.rows_in, ctx.kind)
    return to_features, None, None, None, None, None, None


pool.register_autograd(_pool_backward, setup_context=_pool_saves)


def _no_second(of: str):
    def backward(ctx, *_):
        raise RuntimeError(f"{of} has no second derivative: its gradient was differentiated again (create_graph=True)")
    return backward


conv_grad_input.register_autograd(_no_second("pnet::conv"))
conv_grad_weight.register_autograd(_no_second("pnet::conv"))
pool_grad.register_autograd(_no_second("pnet::pool"))
