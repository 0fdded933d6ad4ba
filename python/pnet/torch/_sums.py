"""Convolution and pools over sets of triplets, for all types that PyTorch's autocast uses.

There are two ways to the library. Tensors as they are go through functions of autograd, which take less than half of the time of
operators. Everything else (torch.compile, torch.export, fake tensors, transforms of functions, subclasses of tensors) goes
through the operators of _ops.py, which compute the same.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch._C import _functorch
from torch.autograd import forward_ad

from pnet import _library as library
from pnet.torch import _calls, _ops
from pnet.torch._calls import NARROW, Triplets
from pnet.torch._plans import Plan, by_tap

_TENSORS = {Tensor, torch.nn.Parameter}
_PLAIN = {*_TENSORS, type(None)}
_modes = torch._C._len_torch_dispatch_stack
_transforms = _functorch.peek_interpreter_stack
_OPTIONAL = {"bias", "x_splits", "y_splits"}
_compiling = torch.compiler.is_compiling
_tracing = torch._C._get_tracing_state  # None: torch.jit.trace does not record
_is_batched = _functorch.is_legacy_batchedtensor  # by jacobian(vectorize=True) and is_grads_batched, which are no transforms
_alive = _functorch.unwrap_if_dead  # a tensor that outlived a transform of functions, without what is left of that


def is_direct(one: Tensor, other: Tensor | None = None, third: Tensor | None = None) -> bool:
    """Whether nothing but autograd looks into a call with these tensors."""
    return (not _compiling() and not _modes() and _transforms() is None  # in this order: a compiler sees the first alone
            and type(one) in _TENSORS and type(other) in _PLAIN and type(third) in _PLAIN and _tracing() is None)


def check_operands(**given: Tensor | None) -> None:
    """Before calls of operators: refuses what is no tensor, and what PyTorch would answer with an error about its own inside,
    with a program that is right for these voxels or points alone, or with zeros in the place of derivatives."""
    for name, t in given.items():
        if not isinstance(t, Tensor) and (t is not None or name not in _OPTIONAL):
            raise library.wrong_class(name, t, "torch.Tensor: torch.from_numpy makes one of an array of NumPy")
    if _compiling():
        return
    if _tracing() is not None:
        raise RuntimeError("torch.jit.trace, and torch.onnx.export with dynamo=False, cannot record pnet.torch: the voxels or "
                           "points of this call would become constants. torch.export.export and torch.compile take such networks")
    if any(one.key() == _functorch.TransformType.Grad for one in _functorch.get_interpreter_stack() or ()):
        raise RuntimeError("pnet.torch has no torch.func.grad, vjp, jacrev or hessian: torch.autograd.grad, "
                           "torch.autograd.functional.jacobian and backward() differentiate it")
    if forward_ad._current_level < 0:
        return
    if any(t is not None and forward_ad.unpack_dual(t).tangent is not None for t in given.values()):
        raise RuntimeError("pnet.torch has no forward derivatives (torch.func.jvp, torch.autograd.forward_ad)")


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


class _Conv(torch.autograd.Function):
    @staticmethod
    def forward(ctx, features, weight, bias, of, plan):
        x = features if features.dtype is plan.stored else features.to(plan.stored)
        w = plan.weights(weight)
        ctx.save_for_backward(x, w)
        ctx.of, ctx.plan, ctx.by_tap = of, plan, w is weight
        result = plan.forward(of, x, w, bias if bias is None or bias.dtype is torch.float32 else bias.float())
        return result if plan.kind is plan.stored else result.to(plan.kind)

    @staticmethod
    def backward(ctx, gradient):
        x, w = ctx.saved_tensors
        of, plan, wanted = ctx.of, ctx.plan, ctx.needs_input_grad
        g = gradient if gradient.dtype is x.dtype else gradient.to(x.dtype)
        # operators refuse second derivatives, and PyTorch runs them for each of a batch of gradients
        direct = not torch.is_grad_enabled() and is_direct(gradient, x, w) and not _is_batched(gradient)
        to_features, to_weight = (plan.gradients if direct else plan.by_operators)(of, x, w, g, wanted)
        if to_features is not None and plan.features_type is not plan.stored:
            to_features = to_features.to(plan.features_type)
        if to_weight is not None:
            to_weight = plan.as_given(to_weight, ctx.by_tap)
        to_bias = g.sum(0, dtype=torch.float32).to(plan.bias_type) if wanted[2] else None
        return to_features, to_weight, to_bias, None, None


# Function.apply looks for transforms of functions, and for tensors that outlived one; conv() has done so
_apply = super(torch.autograd.Function, _Conv).apply


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
        if torch.is_grad_enabled() or not is_direct(gradient, argmax) or _is_batched(gradient):
            found = _ops.pool_grad(g, argmax, of.by_out, of.by_in, of.count, of.taps, of.rows_in, ctx.kind)
        else:
            found = _calls.pool_grad(of, g, argmax, ctx.kind)
        return found.to(ctx.narrow), None, None


def conv(of: Triplets, features: Tensor, weight: Tensor, bias: Tensor | None, groups: int, outer: bool = False) -> Tensor:
    """result[i] = bias + sum over (i, j, k) of features[j] weight[k]. `outer`: weights are [out, .., in / groups]."""
    if type(groups) is not int:
        groups = library.count("groups", groups, 31, 1)
    if weight is not None and is_direct(features, weight, bias):
        features, weight, bias = _alive(features), _alive(weight), None if bias is None else _alive(bias)
        autocast = torch.get_autocast_dtype(of.type) if torch.is_autocast_enabled(of.type) else None
        rule = (autocast, features.dtype, features.shape, weight.dtype, weight.shape,
                None if bias is None else (bias.dtype, bias.shape), groups, outer)
        plan = of.plans.get(rule)
        if plan is not None:
            return _apply(features, weight, bias, of, plan)
        plan = Plan(of, features, weight, bias, groups, result_type(features, weight, bias), outer)
        result = _apply(features, weight, bias, of, plan)
        of.plans[rule] = plan
        return result
    check_operands(features=features, weight=weight, bias=bias)
    kind = result_type(features, weight, bias)
    given = None if bias is None else bias.float()
    w = by_tap(weight).reshape(of.taps, -1, weight.shape[0]) if outer else weight
    stored = kind if of.cuda else torch.float32
    return _ops.conv(features.to(stored), w.float(), given, of.by_out, of.by_in, of.count, of.rows_out, groups).to(kind)


def pool(of: Triplets, features: Tensor, kind: str) -> Tensor:
    """result[i] = "max", "mean" or "sum" over (i, j, k) of features[j], 0 where there is none."""
    direct = is_direct(features)
    if not direct:
        check_operands(features=features)
    if features.dtype is not torch.float32 and features.dtype not in NARROW:
        raise library.refuse(f"features are {features.dtype}: expected float32, bfloat16 or float16")
    if direct:
        return _Pool.apply(features, of, kind)
    given = features if of.cuda else features.float()
    return _ops.pool(given, of.by_out, of.by_in, of.count, of.taps, of.rows_out, kind)[0].to(features.dtype)
