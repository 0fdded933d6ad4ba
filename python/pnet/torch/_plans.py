"""What a convolution over a set has found out about tensors of the same types and shapes, so that the next call need not ask.

A set keeps its plans (Triplets.plans). They hold numbers and types, no tensors and not the set: so nothing lives longer by them,
and what they do not know of (the device, where tensors lie, the stream, the precision) each call looks up.
"""

from __future__ import annotations

import torch
from torch import Tensor

from pnet.torch import _calls, _device, _ops
from pnet.torch._calls import ALIGNMENT, FORWARD, GRAD_INPUT, GRAD_WEIGHT, Triplets, computing, matrix, products_of

_F32 = torch.float32


def by_tap(weight: Tensor) -> Tensor:
    """[taps in / groups, out] of weights [out, .., in / groups], as spconv has them."""
    return weight.reshape(weight.shape[0], -1).t()


def strides_by_tap(shape: torch.Size) -> tuple[int, ...]:
    """The strides of weights [out, .., in / groups] that lie in memory as [.., in / groups, out], which the library reads."""
    strides, step = [1], shape[0]
    for size in reversed(shape[1:]):
        strides.insert(1, step)
        step *= size
    return tuple(strides)


class Plan:
    """Of calls of conv() with tensors of the same types and shapes.

    kind     the type of the result
    stored   the type that features and results have in the library
    outer    weights are [out, .., in / groups]
    """

    def __init__(self, of: Triplets, features: Tensor, weight: Tensor, bias: Tensor | None, groups: int, kind: torch.dtype,
                 outer: bool):
        self.kind, self.stored, self.groups, self.outer = kind, kind if of.cuda else _F32, groups, outer
        self.features_type, self.weight_type = features.dtype, weight.dtype
        self.bias_type = None if bias is None else bias.dtype
        self.shape, self.strides = weight.shape, strides_by_tap(weight.shape) if outer else None
        self._result = of.rows_out, weight.shape[0 if outer else -1]
        self._sums: list[_calls.Sum | None] = [None, None, None]  # those that went well, by their kinds

    def weights(self, given: Tensor) -> Tensor:
        """In float32, in memory [taps, in / groups, out]."""
        if not self.outer:
            return given if given.dtype is _F32 else given.float()
        if given.dtype is _F32 and given.stride() == self.strides:
            return given
        return given.new_empty_strided(self.shape, self.strides, dtype=_F32).copy_(given)

    def _stream(self, of: Triplets) -> int:
        """Before calls of sums on a GPU: the stream that they go to."""
        stream = _device.raw_stream(of.index)
        if stream != of._stream:
            of.used(stream)
        return stream

    def _aligned(self, w: Tensor, device: torch.device) -> Tensor:
        """What weights() gave, as kernels read it."""
        if not self.outer:
            return matrix("weight", w, _F32, device)
        if w.device != device or w.data_ptr() % ALIGNMENT:
            return self.weights(matrix("weight", w, _F32, device))
        # what keeps saved tensors elsewhere may give them back in another order in memory
        return w if w.stride() == self.strides else self.weights(w)

    def forward(self, of: Triplets, x: Tensor, w: Tensor, bias: Tensor | None) -> Tensor:
        """The result, in `stored`, of features in it, weights() and a bias in float32."""
        call = self._sums[FORWARD]
        if call is None:
            return _calls.forward(of, x, by_tap(w) if self.outer else w, bias, self.groups, self._sums)
        device = of.device
        x, w = matrix("features", x, self.stored, device), self._aligned(w, device)
        if bias is not None:
            bias = matrix("bias", bias, _F32, device)
        result = x.new_empty(self._result)
        at = x.data_ptr(), w.data_ptr(), result.data_ptr(), 0 if bias is None else bias.data_ptr()
        computing()
        if not of.cuda:
            call(of._handle, *at, 0, 0, 0)
            return result
        stream = self._stream(of)
        room = x.new_empty(call.bytes, dtype=torch.uint8)
        call(of._handle, *at, room.data_ptr(), stream, products_of(self.stored))
        return result

    def gradients(self, of: Triplets, x: Tensor, w: Tensor, g: Tensor, wanted: tuple[bool, ...]) -> tuple:
        """Of features, in `stored`, and of weights(), where they are wanted."""
        to_x, to_w, *_ = wanted
        input_sum, weight_sum = self._sums[GRAD_INPUT], self._sums[GRAD_WEIGHT]
        if (to_x and input_sum is None) or (to_w and weight_sum is None):
            return self._first(of, x, w, g, to_x, to_w)
        device = of.device
        g, x, w = matrix("gradient", g, self.stored, device), matrix("features", x, self.stored, device), self._aligned(w, device)
        of_x, of_w = torch.empty_like(x) if to_x else None, torch.empty_like(w) if to_w else None
        place = stream = products = 0
        computing()
        if of.cuda:
            stream, products = self._stream(of), products_of(self.stored)
            size = max(input_sum.bytes if to_x else 0, weight_sum.bytes if to_w else 0)
            room = x.new_empty(size, dtype=torch.uint8)  # for one sum after the other
            place = room.data_ptr()
        if to_x:
            input_sum(of._handle, g.data_ptr(), w.data_ptr(), of_x.data_ptr(), 0, place, stream, products)
        if to_w:
            weight_sum(of._handle, x.data_ptr(), g.data_ptr(), of_w.data_ptr(), 0, place, stream, products)
        return of_x, of_w

    def _first(self, of: Triplets, x: Tensor, w: Tensor, g: Tensor, to_x: bool, to_w: bool) -> tuple:
        of_x = of_w = None
        if to_x:
            of_x = _calls.grad_input(of, g, by_tap(w) if self.outer else w, self.groups, self._sums)
        if to_w:
            of_w = self._in_order_of(_calls.grad_weight(of, x, g, self.groups, self._sums))
        return of_x, of_w

    def by_operators(self, of: Triplets, x: Tensor, w: Tensor, g: Tensor, wanted: tuple[bool, ...]) -> tuple:
        """What gradients() gives."""
        blocks, of_x, of_w = (of.by_out, of.by_in, of.count), None, None
        if wanted[0]:
            read = (by_tap(w) if self.outer else w).reshape(of.taps, -1, w.shape[0 if self.outer else -1])
            of_x = _ops.conv_grad_input(g, read, *blocks, of.rows_in, self.groups)
        if wanted[1]:
            of_w = self._in_order_of(_ops.conv_grad_weight(x, g, *blocks, of.taps, self.groups))
        return of_x, of_w

    def _in_order_of(self, gradient: Tensor) -> Tensor:
        """[taps, in / groups, out] in the shape of weights()."""
        return gradient.reshape(-1, gradient.shape[-1]).t().reshape(self.shape) if self.outer else gradient.reshape(self.shape)

    def as_given(self, of_w: Tensor, by_tap: bool) -> Tensor:
        """The gradient of weights as they were given, in memory `by_tap` or not."""
        if not self.outer or by_tap:
            return of_w if self.weight_type is _F32 else of_w.to(self.weight_type)
        if self.weight_type is _F32:
            return of_w.contiguous()
        return of_w.new_empty(self.shape, dtype=self.weight_type).copy_(of_w)
