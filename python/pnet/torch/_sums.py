"""Convolution and pools over sets of triplets, for all types that PyTorch's autocast uses.

There are two ways to the library. Tensors as they are go through functions of autograd, which take less than half of the time of
operators. Everything else (torch.compile, torch.export, fake tensors, transforms of functions, subclasses of tensors) goes
through the operators of _ops.py, which compute the same.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch._C import _functorch

from pnet import _library as library
from pnet.torch import _calls, _ops
from pnet.torch._calls import NARROW, Triplets

_PLAIN = {Tensor, torch.nn.Parameter, type(None)}
_modes = torch._C._len_torch_dispatch_stack
_transforms = _functorch.peek_interpreter_stack
_compiling = torch.compiler.is_compiling


def _direct(*given: Tensor | None) -> bool:
    """Whether nothing but autograd looks into a call with these tensors."""
    if _compiling() or _modes() or _transforms() is not None:
        return False
    for tensor in given:
        if type(tensor) not in _PLAIN:
            return False
    return True


def result_type(features: Tensor, *others: Tensor | None) -> torch.dtype:
    """What a sum returns: the type of autocast, or else that of the features, which the others must have too."""
    kind = features.dtype
    for given in (features, *others):
        if given is not None and given.dtype is not torch.float32 and given.dtype not in NARROW:
            raise library.refuse(f"{given.dtype}: expected float32, bfloat16 or float16")
    device = features.device.type
    if torch.is_autocast_enabled(device):
        return torch.get_autocast_dtype(device)
    for given in others:
        if given is not None and given.dtype != kind:
            raise library.refuse(f"features are {kind}, and weights {given.dtype}: without autocast both have one type")
    return kind


def _by_tap(weight: Tensor) -> Tensor:
    """[taps in / groups, out] of weights [out, .., in / groups], as spconv has them."""
    return weight.reshape(weight.shape[0], -1).t()


class _Conv(torch.autograd.Function):
    @staticmethod
    def forward(ctx, features, weight, bias, of, groups, kind, stored, outer):
        x = features if features.dtype is stored else features.to(stored)
        w = _by_tap(weight).contiguous() if outer else weight
        w = w if w.dtype is torch.float32 else w.float()
        ctx.save_for_backward(x, w)
        ctx.rest = (of, groups, weight.shape if outer else None, features.dtype, weight.dtype,
                    None if bias is None else bias.dtype)
        added = bias if bias is None or bias.dtype is torch.float32 else bias.float()
        result = _calls.forward(of, x, w, added, groups)
        return result if kind is stored else result.to(kind)

    @staticmethod
    def backward(ctx, gradient):
        x, w = ctx.saved_tensors
        of, groups, shape, features_type, weight_type, bias_type = ctx.rest
        wanted = ctx.needs_input_grad
        to_features = to_weight = to_bias = None
        g = gradient if gradient.dtype is x.dtype else gradient.to(x.dtype)
        direct = not torch.is_grad_enabled() and _direct(gradient, x, w)  # operators refuse second derivatives
        blocks = () if direct else (of.by_out, of.by_in, of.count)
        if wanted[0]:
            found = _calls.grad_input(of, g, w, groups) if direct else _ops.conv_grad_input(
                g, w if w.dim() == 3 else w.reshape(of.taps, -1, w.shape[1]), *blocks, of.rows_in, groups)
            to_features = found if found.dtype is features_type else found.to(features_type)
        if wanted[1]:
            found = _calls.grad_weight(of, x, g, groups) if direct else _ops.conv_grad_weight(x, g, *blocks, of.taps, groups)
            if shape is not None:
                found = found.view(-1, found.shape[2]).t().reshape(shape)
            to_weight = found if found.dtype is weight_type else found.to(weight_type)
        if wanted[2]:
            to_bias = g.sum(0, dtype=torch.float32).to(bias_type)
        return to_features, to_weight, to_bias, None, None, None, None, None


class _Pool(torch.autograd.Function):
    @staticmethod
    def forward(ctx, features, of, kind):
        x = features if of.cuda or features.dtype is torch.float32 else features.float()
        result, argmax = _calls.pool(of, x, kind)
        ctx.save_for_backward(argmax)
        ctx.of, ctx.kind, ctx.narrow = of, kind, features.dtype
        return result.to(features.dtype)

    @staticmethod
    def backward(ctx, gradient):
        argmax, = ctx.saved_tensors
        of = ctx.of
        g = gradient.to(ctx.narrow if of.cuda else torch.float32)
        if torch.is_grad_enabled() or not _direct(gradient, argmax):
            found = _ops.pool_grad(g, argmax, of.by_out, of.by_in, of.count, of.taps, of.rows_in, ctx.kind)
        else:
            found = _calls.pool_grad(of, g, argmax, ctx.kind)
        return found.to(ctx.narrow), None, None


def conv(of: Triplets, features: Tensor, weight: Tensor, bias: Tensor | None, groups: int, outer: bool = False) -> Tensor:
    """result[i] = bias + sum over (i, j, k) of features[j] weight[k]. `outer`: weights are [out, .., in / groups]."""
    kind = result_type(features, weight, bias)
    stored = kind if of.cuda else torch.float32
    if _direct(features, weight, bias):
        return _Conv.apply(features, weight, bias, of, groups, kind, stored, outer)
    by_tap = _by_tap(weight).reshape(of.taps, -1, weight.shape[0]) if outer else weight
    given = None if bias is None else bias.float()
    return _ops.conv(features.to(stored), by_tap.float(), given, of.by_out, of.by_in, of.count, of.rows_out, groups).to(kind)


def pool(of: Triplets, features: Tensor, kind: str) -> Tensor:
    """result[i] = "max", "mean" or "sum" over (i, j, k) of features[j], 0 where there is none."""
    if features.dtype is not torch.float32 and features.dtype not in NARROW:
        raise library.refuse(f"features are {features.dtype}: expected float32, bfloat16 or float16")
    if _direct(features):
        return _Pool.apply(features, of, kind)
    given = features if of.cuda else features.float()
    return _ops.pool(given, of.by_out, of.by_in, of.count, of.taps, of.rows_out, kind)[0].to(features.dtype)
