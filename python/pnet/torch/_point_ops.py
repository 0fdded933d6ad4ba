"""The operators of _points.py: maps, attention and losses. Their geometry travels as a token, a tensor with a number."""

from typing import List, Optional, Tuple

import torch
from torch import Tensor
from torch.library import custom_op

from pnet import _library as library
from pnet import points as arrays
from pnet.torch._ops import _no_second
from pnet.torch._points import _array, held


def _tensor(given) -> Tensor:
    return torch.from_numpy(given)


@custom_op("pnet::map", mutates_args=())
def point_map(features: Tensor, token: Tensor, rows: int, kind: str) -> Tuple[Tensor, Tensor]:
    """pnet_map_forward: [rows, channels] of features float32, and the rows that maxima came from, int32; [0, channels] of other
    kinds."""
    made, x = held(token), _array("features", features)
    if kind == "max":
        result, argmax = made.forward(x, argmax=True)
        return _tensor(result), _tensor(argmax)
    return _tensor(made.forward(x)), features.new_empty((0, features.shape[1]), dtype=torch.int32)


@point_map.register_fake
def _(features, token, rows, kind):
    shape = (rows if kind == "max" else 0, features.shape[1])
    return features.new_empty((rows, features.shape[1])), features.new_empty(shape, dtype=torch.int32)


@custom_op("pnet::map_grad", mutates_args=())
def map_grad(gradient: Tensor, argmax: Tensor, token: Tensor, rows: int, kind: str) -> Tensor:
    """pnet_map_backward: [rows, channels] of gradient [rows of the output, channels]."""
    return _tensor(held(token).backward(_array("gradient", gradient), argmax.numpy() if kind == "max" else None))


@map_grad.register_fake
def _(gradient, argmax, token, rows, kind):
    return gradient.new_empty((rows, gradient.shape[1]))


def _map_saves(ctx, inputs, output):
    features, token, _, kind = inputs
    ctx.save_for_backward(output[1], token)
    ctx.mark_non_differentiable(output[1])
    ctx.rows, ctx.kind = features.shape[0], kind


def _map_backward(ctx, gradient, _):
    argmax, token = ctx.saved_tensors
    return map_grad(gradient, argmax, token, ctx.rows, ctx.kind), None, None, None


point_map.register_autograd(_map_backward, setup_context=_map_saves)
map_grad.register_autograd(_no_second("pnet::map"))


@custom_op("pnet::attend", mutates_args=())
def attend(qkv: Tensor, token: Tensor, heads: int, scale: float) -> Tuple[Tensor, Tensor]:
    """pnet_attend_forward: [rows, C] of qkv float32 [rows, 3 C], and log_sum [rows, heads] for the backward. scale 0: usual."""
    result, log_sum = held(token).attend(_array("qkv", qkv), heads, scale or None)
    return _tensor(result), _tensor(log_sum)


@attend.register_fake
def _(qkv, token, heads, scale):
    return qkv.new_empty((qkv.shape[0], qkv.shape[1] // 3)), qkv.new_empty((qkv.shape[0], heads))


@custom_op("pnet::attend_grad", mutates_args=())
def attend_grad(gradient: Tensor, qkv: Tensor, result: Tensor, log_sum: Tensor, token: Tensor, scale: float) -> Tensor:
    """pnet_attend_backward: [rows, 3 C]."""
    given = (_array(name, t) for name, t in (("qkv", qkv), ("result", result), ("log_sum", log_sum), ("gradient", gradient)))
    return _tensor(held(token).attend_backward(*given, scale or None))


@attend_grad.register_fake
def _(gradient, qkv, result, log_sum, token, scale):
    return torch.empty_like(qkv, memory_format=torch.contiguous_format)


def _attend_saves(ctx, inputs, output):
    qkv, token, _, scale = inputs
    ctx.save_for_backward(qkv, *output, token)
    ctx.mark_non_differentiable(output[1])
    ctx.scale = scale


def _attend_backward(ctx, gradient, _):
    return attend_grad(gradient, *ctx.saved_tensors, ctx.scale), None, None, None


attend.register_autograd(_attend_backward, setup_context=_attend_saves)
attend_grad.register_autograd(_no_second("pnet::attend"))


@custom_op("pnet::point_loss", mutates_args=())
def point_loss(x: Tensor, y: Tensor, x_splits: Optional[Tensor], y_splits: Optional[Tensor], kind: str, names: str,
               values: List[float], gradients: bool) -> Tuple[Tensor, Tensor, Tensor]:
    """pnet_loss_forward with options of these names, between spaces, and with `gradients` those by x and y, else [0, 3]."""
    points = []
    for name, positions, splits in (("x", x, x_splits), ("y", y, y_splits)):
        begins = None if splits is None else _array(f"{name}_splits", splits)
        points.append(arrays.Points(_array(name, positions), row_splits=begins))
    whole = ("rounds", "most", "entries", "squares", "at_least_one", "sums")
    options = {name: int(value) if name in whole else value for name, value in zip(names.split(), values)}
    found = arrays.point_loss(kind, *points, gradients=gradients, **options)
    if gradients:
        return torch.tensor(found[0]), _tensor(found[1]), _tensor(found[2])
    return torch.tensor(found), x.new_empty((0, 3)), y.new_empty((0, 3))


@point_loss.register_fake
def _(x, y, x_splits, y_splits, kind, names, values, gradients):
    return x.new_empty(()), *(t.new_empty((t.shape[0] if gradients else 0, 3)) for t in (x, y))


@custom_op("pnet::point_loss_grad", mutates_args=())
def point_loss_grad(gradient: Tensor, by: Tensor) -> Tensor:
    """gradient * by, where `by` is what the forward computed."""
    return gradient * by


@point_loss_grad.register_fake
def _(gradient, by):
    return torch.empty_like(by)


def _loss_saves(ctx, inputs, output):
    ctx.save_for_backward(*output[1:])
    ctx.mark_non_differentiable(*output[1:])


def _loss_backward(ctx, gradient, *_):
    wanted = ctx.needs_input_grad
    found = [point_loss_grad(gradient, by) if want else None for by, want in zip(ctx.saved_tensors, wanted)]
    return *found, None, None, None, None, None, None


point_loss.register_autograd(_loss_backward, setup_context=_loss_saves)
point_loss_grad.register_autograd(_no_second("pnet::point_loss"))
