"""Sets that lie in tensors, and the sums over them: what a call of the library costs is kept small here, because a GPU often
waits for it.

A set is two blocks of bytes (struct pnet_packed in pnet.h), tensors of int64, and a few numbers. On a GPU nothing waits: a call
is put on the current stream, and its workspace comes from PyTorch's allocator.
"""

from __future__ import annotations

import os
import struct
import threading
import weakref
from ctypes import Structure, addressof, c_char, c_size_t, c_void_p, sizeof

import torch
from torch import Tensor

from pnet import _handle
from pnet import _library as library
from pnet.torch import _device

_DTYPES = {torch.float32: library.DTYPES["f32"], torch.int32: library.DTYPES["i32"],
           torch.bfloat16: library.DTYPES["bf16"], torch.float16: library.DTYPES["f16"]}
NARROW = (torch.bfloat16, torch.float16)
FORWARD, GRAD_INPUT, GRAD_WEIGHT = (library.CONVS[name] for name in ("forward", "grad_input", "grad_weight"))
_PRODUCTS = {torch.bfloat16: library.PRODUCTS["as_stored"], torch.float16: library.PRODUCTS["as_stored"]}
_FP32, _TF32 = library.PRODUCTS["fp32"], library.PRODUCTS["tf32"]
ALIGNMENT = 16


class Frame(Structure):
    """The arguments of a sum, which each thread keeps and fills by one call of `pack`."""

    _fields_ = [("left", library.pnet_array), ("right", library.pnet_array), ("result", library.pnet_array_out),
                ("options", library.pnet_conv_options), ("error", library.pnet_error)]


# Frame without `error`: left, right, result (data, dtype, rows, width, stride), then the options.
NUMBERS = struct.Struct("@" + "Pi4xqqq" * 3 + "Ni4xPi4xPNPi4x")
_OPTIONS = sizeof(library.pnet_conv_options)


_LEFT, _RIGHT, _RESULT = (getattr(Frame, name).offset // 8 for name in ("left", "right", "result"))
_BIAS, _WORKSPACE, _STREAM, _PRECISION = ((Frame.options.offset + getattr(library.pnet_conv_options, name).offset) // 8
                                          for name in ("bias", "workspace", "stream", "precision"))


class _Frames(threading.local):
    def __init__(self):
        self.frame = Frame()
        self.room = (c_char * sizeof(Frame)).from_buffer(self.frame)
        at = addressof(self.frame)
        self.left, self.right, self.result, self.options, self.error = (at + getattr(Frame, name).offset for name in (
            "left", "right", "result", "options", "error"))

    def failed(self, status: int) -> library.Error:
        return library.failed(status, self.frame.error)


_frames = _Frames()
_opening = threading.Lock()
_sums = [library.untyped(name, 6) for name in ("pnet_conv_forward", "pnet_conv_grad_input", "pnet_conv_grad_weight")]


def computing() -> None:
    """Before each call that runs threads."""
    if _handle.Computing._first != os.getpid():
        _handle.Computing.own_process()
        _handle.Computing.begun()


def matrix(name: str, given: Tensor, dtype: torch.dtype, device: torch.device) -> Tensor:
    """A contiguous tensor of this type on this device, aligned as kernels read it."""
    if given.dtype is not dtype:
        raise library.refuse(f"{name} is {given.dtype}, expected {dtype}")
    if given.device != device:
        raise library.refuse(f"{name} is on {given.device}, expected {device}: the set, features and weights lie together")
    found = given if given.is_contiguous() else given.contiguous()
    return found.clone() if found.data_ptr() % ALIGNMENT else found


def _free(handle: int) -> None:
    library.plain("pnet_set_free", handle)


class Triplets:
    """A set of triplets (i, j, k) in tensors: `by_out` and `by_in` are its blocks."""

    def __init__(self, by_out: Tensor, by_in: Tensor, count: int, rows_out: int, rows_in: int, taps: int):
        self.by_out, self.by_in, self.count = by_out, by_in, count
        self.rows_out, self.rows_in, self.taps = rows_out, rows_in, taps
        self._begin()

    def _begin(self) -> None:
        self.device = self.by_out.device
        self.type, self.index = self.device.type, self.device.index
        self.cuda = self.type == "cuda"
        self._handle = self._turned = None
        self._bytes: dict[tuple, int] = {}  # of workspaces
        self.plans: dict[tuple, object] = {}  # of convolutions (_plans.py)
        self._stream = self._ready = None  # where it was made
        self._known: set[int] = set()  # streams that have waited for that

    def __getstate__(self) -> dict:
        return {name: getattr(self, name) for name in ("by_out", "by_in", "count", "rows_out", "rows_in", "taps")}

    def __setstate__(self, state: dict) -> None:
        self.__dict__.update(state)
        self._begin()  # a copy makes its own handle, and a file may be loaded on another device

    def adopt(self, owner: _handle.Handle) -> Triplets:
        """Takes the set that the blocks were made of for the library's calls, and keeps it."""
        self._owner, self._handle = owner, owner._use()
        return self

    def made(self) -> Triplets:
        """Behind the call that made the blocks: other streams wait for it."""
        if self.cuda:
            self._stream = _device.raw_stream(self.device.index)
            self._ready = torch.cuda.Event()
            self._ready.record(torch.cuda.current_stream(self.device))
        return self

    def inverse(self) -> Triplets:
        """The same with i and j exchanged."""
        if self._turned is None:
            found = Triplets(self.by_in, self.by_out, self.count, self.rows_in, self.rows_out, self.taps)
            found._stream, found._ready = self._stream, self._ready
            self._turned = found
        return self._turned

    def handle(self) -> int:
        """The set of the library, made when it is first needed."""
        with _opening:
            if self._handle is None:
                made = self._open()
                weakref.finalize(self, _free, made).atexit = False
                self._handle = made
        return self._handle

    def _open(self) -> int:
        computing()
        packed = library.pnet_packed(
            rows_in=self.rows_in, rows_out=self.rows_out, triplets=self.count, taps=self.taps,
            by_out=self.by_out.data_ptr(), by_in=self.by_in.data_ptr(), by_out_bytes=self.by_out.numel() * 8,
            by_in_bytes=self.by_in.numel() * 8)
        _device.place(self.device, packed)
        return _device.make("pnet_set_unpack", packed).value

    def workspace(self, kind: int, channels_in: int, channels_out: int, groups: int) -> int:
        """Bytes that a sum needs."""
        rule = kind, channels_in, channels_out, groups
        found = self._bytes.get(rule)
        if found is None:
            size = c_size_t()
            library.call("pnet_conv_workspace", self.handle(), *rule, size)
            found = self._bytes[rule] = max(size.value, 1)
        return found

    def used(self, stream: int) -> None:
        """Before work on a stream that the set was not made on: waits there for the set, and keeps its memory until the work is
        over."""
        if self._stream is None:  # it came from a copy or a file
            self._stream = stream
            return
        current = torch.cuda.current_stream(self.device)
        for block in self.by_out, self.by_in:
            block.record_stream(current)
        # a graph that is recorded begins behind all other work (torch.cuda.graph), and cannot wait for what is outside of it
        if stream not in self._known and self._ready is not None and not torch.cuda.is_current_stream_capturing():
            current.wait_event(self._ready)
            self._known.add(stream)


def pack(of: c_void_p, device: torch.device) -> tuple[Tensor, Tensor, int]:
    """The blocks of a set of the library, and the number of triplets."""
    packed = library.pnet_packed()
    library.call("pnet_set_packed_sizes", of, packed)
    blocks = [torch.empty(size // 8, dtype=torch.int64, device=device) for size in (packed.by_out_bytes, packed.by_in_bytes)]
    packed.by_out, packed.by_in = (block.data_ptr() for block in blocks)
    library.call("pnet_set_pack", of, packed)
    return *blocks, packed.triplets


def products_of(dtype: torch.dtype) -> int:
    """Of float32 on a GPU: as PyTorch multiplies matrices."""
    found = _PRODUCTS.get(dtype)
    if found is not None:
        return found
    return _FP32 if torch.get_float32_matmul_precision() == "highest" else _TF32


def _run(kind: int, of: Triplets, left: Tensor, right: Tensor, result: Tensor, channels: tuple[int, int], bias: Tensor | None,
         groups: int, known: list[Sum | None] | None) -> Tensor:
    """One of the sums, of contiguous tensors, for a layer with these channels in and out; `known` gets it to be called again."""
    computing()
    frames = _frames
    stream = products = workspace = size = 0
    if of.cuda:
        stream = _device.raw_stream(of.device.index)
        if stream != of._stream:
            of.used(stream)
        size = of._bytes.get((kind, *channels, groups)) or of.workspace(kind, *channels, groups)
        room = left.new_empty(size, dtype=torch.uint8)
        workspace, products = room.data_ptr(), products_of(left.dtype)
    wide, width = right.shape[-1], result.shape[-1]
    NUMBERS.pack_into(
        frames.room, 0,
        left.data_ptr(), _DTYPES[left.dtype], left.shape[0], left.shape[1], 0,
        right.data_ptr(), _DTYPES[right.dtype], right.numel() // (wide or 1), wide, 0,
        result.data_ptr(), _DTYPES[result.dtype], result.numel() // (width or 1), width, 0,
        _OPTIONS, groups, 0 if bias is None else bias.data_ptr(), 0, workspace, size, stream, products)
    status = _sums[kind](of._handle or of.handle(), frames.left, frames.right, frames.options, frames.result, frames.error)
    if status:
        raise frames.failed(status)
    if known is not None:
        known[kind] = Sum(kind, frames.room.raw, size)
    return result


class _Arguments:
    """A frame for calls of one Sum, and its numbers as words of 64 bits."""

    def __init__(self, numbers: bytes):
        room = bytearray(numbers)
        self.frame, self.words = Frame.from_buffer(room), memoryview(room).cast("N")
        at = addressof(self.frame)
        self.places = [at + getattr(Frame, name).offset for name in ("left", "right", "options", "result", "error")]


class Sum:
    """A sum that went well, to be called again with tensors of the same types and shapes, which are contiguous, aligned and on
    the device of the set. Then only the places of tensors, the stream and the precision are new.

    bytes   of workspace, 0 on the CPU
    """

    __slots__ = "bytes", "_function", "_numbers", "_free"

    def __init__(self, kind: int, numbers: bytes, size: int):
        self.bytes, self._function, self._numbers = size, _sums[kind], numbers
        self._free: list[_Arguments] = []  # each thread that is in a call has one of its own

    def __call__(self, handle: int, left: int, right: int, result: int, bias: int, workspace: int, stream: int,
                 products: int) -> None:
        free = self._free
        arguments = free.pop() if free else _Arguments(self._numbers)
        words = arguments.words
        words[_LEFT], words[_RIGHT], words[_RESULT], words[_BIAS] = left, right, result, bias
        words[_WORKSPACE], words[_STREAM], words[_PRECISION] = workspace, stream, products
        status = self._function(handle, *arguments.places)
        if status:
            raise library.failed(status, arguments.frame.error)
        free.append(arguments)


def _rows(name: str, given: Tensor, of: Triplets) -> Tensor:
    """A matrix of features, or of their gradients."""
    if given.dim() != 2:
        raise library.refuse(f"{name}: {list(given.shape)}, expected [rows, channels]")
    if of.cuda and given.dtype in NARROW:
        return matrix(name, given, given.dtype, of.device)
    return matrix(name, given, torch.float32, of.device)


def _weights(given: Tensor, of: Triplets) -> tuple[Tensor, int]:
    """[taps, in / groups, out], or the same as [taps in / groups, out], in float32; and in / groups."""
    found = matrix("weight", given, torch.float32, of.device)
    if given.dim() == 3:
        return found, given.shape[1]
    if given.dim() != 2 or given.shape[0] % of.taps:
        raise library.refuse(f"weights: {list(given.shape)}, expected [taps, in / groups, out]")
    return found, given.shape[0] // of.taps


def forward(of: Triplets, features: Tensor, weight: Tensor, bias: Tensor | None, groups: int,
            known: list[Sum | None] | None = None) -> Tensor:
    """pnet_conv_forward: features [rows_in, in], weight [taps, in / groups, out], bias [out]; returns [rows_out, out]. Weights
    and bias are float32; features too, or on a GPU of a type with 16 bits, which the result has then."""
    x, (w, _) = _rows("features", features, of), _weights(weight, of)
    out = w.shape[-1]
    if not 1 <= groups <= x.shape[1]:
        raise library.refuse(f"{groups} groups do not divide {x.shape[1]} channels in and {out} out")
    if bias is not None:
        if bias.shape != (out,):
            raise library.refuse(f"bias is {list(bias.shape)}, expected [{out}]")
        bias = matrix("bias", bias, torch.float32, of.device)
    return _run(FORWARD, of, x, w, x.new_empty((of.rows_out, out)), (x.shape[1], out), bias, groups, known)


def grad_input(of: Triplets, gradient: Tensor, weight: Tensor, groups: int,
               known: list[Sum | None] | None = None) -> Tensor:
    """pnet_conv_grad_input: [rows_in, in] of gradient [rows_out, out]."""
    g, (w, deep) = _rows("gradient", gradient, of), _weights(weight, of)
    width = deep * groups
    return _run(GRAD_INPUT, of, g, w, g.new_empty((of.rows_in, width)), (width, g.shape[1]), None, groups, known)


def grad_weight(of: Triplets, features: Tensor, gradient: Tensor, groups: int,
                known: list[Sum | None] | None = None) -> Tensor:
    """pnet_conv_grad_weight: float32 [taps, in / groups, out]."""
    x, g = _rows("features", features, of), _rows("gradient", gradient, of)
    width, out = x.shape[1], g.shape[1]
    result = x.new_empty((of.taps, width // groups, out), dtype=torch.float32)
    return _run(GRAD_WEIGHT, of, x, g, result, (width, out), None, groups, known)


def _described(given: Tensor, kind=library.pnet_array):
    rows, width = given.shape
    return kind(data=given.data_ptr(), dtype=_DTYPES[given.dtype], rows=rows, width=width, stride=0)


def _pooled(of: Triplets) -> library.pnet_pool_options | None:
    """Where a pool works."""
    if not of.cuda:
        return None
    stream = _device.raw_stream(of.device.index)
    if stream != of._stream:
        of.used(stream)
    return library.pnet_pool_options(stream=stream or None)


def pool(of: Triplets, features: Tensor, kind: str) -> tuple[Tensor, Tensor]:
    """pnet_pool_forward, and the rows that maxima came from, or none."""
    computing()
    number = library.choice("kind", library.POOLINGS, kind)
    x = _rows("features", features, of)
    result = x.new_empty((of.rows_out, x.shape[1]))
    argmax = x.new_empty((of.rows_out if kind == "max" else 0, x.shape[1]), dtype=torch.int32)
    filled = _described(argmax, library.pnet_array_out) if kind == "max" else None
    library.call("pnet_pool_forward", of.handle(), number, _described(x), _pooled(of), _described(result, library.pnet_array_out),
                 filled)
    return result, argmax


def pool_grad(of: Triplets, gradient: Tensor, argmax: Tensor, kind: str) -> Tensor:
    """pnet_pool_backward."""
    computing()
    number = library.choice("kind", library.POOLINGS, kind)
    g = _rows("gradient", gradient, of)
    came_from, result = matrix("argmax", argmax, torch.int32, of.device), g.new_empty((of.rows_in, g.shape[1]))
    library.call("pnet_pool_backward", of.handle(), number, _described(g), _described(came_from) if kind == "max" else None,
                 _pooled(of), _described(result, library.pnet_array_out))
    return result
