"""The operators of _points.py: maps, attention and losses. Their geometry travels as a token, a tensor with a number."""

from typing import List, Optional, Tuple

import torch
from torch import Tensor
from torch.library import custom_op

from pnet import points as arrays
from pnet.torch import _geometry
from pnet.torch._ops import _no_second
from pnet.torch._points import held


@custom_op("pnet::map", mutates_args=())
def point_map(features: Tensor, token: Tensor, rows: int, kind: str) -> Tuple[Tensor, Tensor]:
    """pnet_map_forward: [rows, channels] of features, float32 or on a GPU also of 16 bits, and the rows that maxima came from,
    int32; [0, channels] of other kinds."""
    result, argmax = held(token).forward(features)
    return result, features.new_empty((0, features.shape[1]), dtype=torch.int32) if argmax is None else argmax


@point_map.register_fake
def _(features, token, rows, kind):
    shape = (rows if kind == "max" else 0, features.shape[1])
    return features.new_empty((rows, features.shape[1])), features.new_empty(shape, dtype=torch.int32)


@custom_op("pnet::map_grad", mutates_args=())
def map_grad(gradient: Tensor, argmax: Tensor, token: Tensor, rows: int, kind: str) -> Tensor:
    """pnet_map_backward: [rows, channels] of gradient [rows of the output, channels]."""
    return held(token).backward(gradient, argmax if kind == "max" else None)


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
    """pnet_attend_forward: [rows, C] of qkv [rows, 3 C], float32 or on a GPU also of 16 bits, and log_sum float32 [rows, heads]
    for the backward. scale 0: the usual one."""
    return held(token).forward(qkv, heads, scale)


@attend.register_fake
def _(qkv, token, heads, scale):
    return qkv.new_empty((qkv.shape[0], qkv.shape[1] // 3)), qkv.new_empty((qkv.shape[0], heads), dtype=torch.float32)


@custom_op("pnet::attend_grad", mutates_args=())
def attend_grad(gradient: Tensor, qkv: Tensor, result: Tensor, log_sum: Tensor, token: Tensor, scale: float) -> Tensor:
    """pnet_attend_backward: [rows, 3 C]."""
    return held(token).backward(qkv, result, log_sum, gradient, scale)


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
    whole = (*arrays.LOSS_FLAGS, *arrays.LOSS_COUNTS)
    options = {name: int(value) if name in whole and value.is_integer() else value for name, value in zip(names.split(), values)}
    return _geometry.loss(kind, x, y, x_splits, y_splits, options, gradients)


@point_loss.register_fake
def _(x, y, x_splits, y_splits, kind, names, values, gradients):
    return x.new_empty(()), *(t.new_empty((t.shape[0] if gradients else 0, 3)) for t in (x, y))


@custom_op("pnet::point_loss_grad", mutates_args=())
def point_loss_grad(gradient: Tensor, by: Tensor, of: Tensor) -> Tensor:
    """gradient * by, where `by` is what the forward computed of the points `of`: they are there so that autograd sees that the
    gradient depends on them."""
    return gradient * by


@point_loss_grad.register_fake
def _(gradient, by, of):
    return torch.empty_like(by)


def _loss_saves(ctx, inputs, output):
    ctx.save_for_backward(*output[1:], *inputs[:2])
    ctx.mark_non_differentiable(*output[1:])


def _loss_backward(ctx, gradient, *_):
    wanted, saved = ctx.needs_input_grad, ctx.saved_tensors
    found = [point_loss_grad(gradient, by, of) if want else None for by, of, want in zip(saved[:2], saved[2:], wanted)]
    return *found, None, None, None, None, None, None


point_loss.register_autograd(_loss_backward, setup_context=_loss_saves)
point_loss_grad.register_autograd(_no_second("pnet::point_loss"))
