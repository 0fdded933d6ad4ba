"""Geometry of the library on tensors of one device: points, and features through what is made of them.

On a GPU what makes something waits for the current stream, its home, to which its memory goes back. Calls on features are put on
the current stream and wait for nothing, and all memory comes from PyTorch's allocator. On the CPU the calls are the same.
"""

from __future__ import annotations

from ctypes import POINTER, byref, c_float, c_int32, c_size_t, c_void_p, cast

import torch
from torch import Tensor

from pnet import _handle
from pnet import _library as library
from pnet import points as arrays
from pnet.torch import _calls, _device

_DTYPES = {**_calls._DTYPES, torch.int64: library.DTYPES["i64"]}


def described(given: Tensor, kind=library.pnet_array):
    """A contiguous matrix, or column, which must live as long as this is used."""
    rows, width = given.shape if given.dim() == 2 else (given.shape[0], 1)
    return kind(data=given.data_ptr() or None, dtype=_DTYPES[given.dtype], rows=rows, width=width, stride=0)


def filled(given: Tensor) -> library.pnet_array_out:
    """The same of a tensor that a call fills."""
    return described(given, library.pnet_array_out)


def _pointer(given: Tensor, kind):
    return cast(c_void_p(given.data_ptr()), POINTER(kind))


def _given(name: str, value: Tensor, device: torch.device, most: int) -> Tensor:
    """A contiguous tensor of a type of the library on this device, with so many dimensions at most."""
    if not isinstance(value, Tensor):
        raise library.refuse(f"{name}: expected a tensor, not {type(value).__name__}")
    if value.device != device:
        raise library.refuse(f"{name} is on {value.device}, expected {device}: what belongs to points lies where they do")
    if value.dtype not in (torch.float32, torch.int32, torch.int64):
        raise library.refuse(f"{name} is {value.dtype}, expected float32 of positions, int32 or int64 of samples and row splits")
    if not 1 <= value.dim() <= most:
        raise library.refuse(f"{name} has {value.dim()} dimensions, expected 1 or {most}")
    return value.detach().contiguous()


def points(positions: Tensor, row_splits: Tensor | None = None, sample: Tensor | None = None,
           batches: int | None = None, cell: float | None = None, name: str = "positions") -> arrays.Points:
    """Points where the positions lie. On a GPU it waits for the current stream."""
    device = positions.device
    options = arrays.points_options(batches, cell)
    _device.place(device, options)
    kept = [_given(name, positions, device, 2)]  # until the call ends
    for member, value in (("row_splits", row_splits), ("sample", sample)):
        if value is not None:
            kept.append(_given(member, value, device, 1))
            setattr(options, member, POINTER(library.pnet_array)(described(kept[-1])))
    _calls.computing()
    return arrays.Points._of(_device.make("pnet_points_new", byref(described(kept[0])), byref(options)))


class _Through:
    """What features go through, made of points: an object of the library, its device and home."""

    def __init__(self, made: _handle.Computing, device: torch.device, home: torch.cuda.Stream | None):
        self.made, self.device, self.home = made, device, home

    def _rows(self, name: str, given: Tensor, rows: int, dtype: torch.dtype | None = None) -> Tensor:
        """A matrix with so many rows, as the library reads it."""
        if given.dim() != 2 or given.shape[0] != rows:
            raise library.refuse(f"{name} is {list(given.shape)}, expected [{rows}, channels]")
        narrow = self.home is not None and given.dtype in _calls.NARROW
        return _calls.matrix(name, given.detach(), dtype or (given.dtype if narrow else torch.float32), self.device)

    def _workspace(self, name: str, like: Tensor, *rule) -> Tensor:
        """What a call of these numbers needs."""
        size = c_size_t()
        self.made._call(name, *rule, byref(size))
        return like.new_empty(size.value, dtype=torch.uint8)

    def _run(self, name: str, given: list[Tensor], options, room: Tensor, result: Tensor) -> None:
        options.workspace, options.workspace_bytes = room.data_ptr() or None, room.numel()
        with _device.reading(self.home) as stream:
            options.stream = stream or None
            self.made._call(name, *(byref(described(one)) for one in given), byref(options), byref(filled(result)))


class Map(_Through):
    """Rows of some points from rows of others (struct pnet_map)."""

    def _step(self, backward: int, x: Tensor, rows: int, argmax: Tensor | None) -> Tensor:
        result = x.new_empty((rows, x.shape[1]))
        run = library.pnet_map_run()
        if argmax is not None:
            argmax = argmax if argmax.numel() else argmax.new_empty(1)  # NULL says that there are none
            run.argmax = _pointer(argmax, c_int32)
        room = self._workspace("pnet_map_workspace", x, backward, x.shape[1])
        self._run("pnet_map_backward" if backward else "pnet_map_forward", [x], run, room, result)
        return result

    def forward(self, features: Tensor) -> tuple[Tensor, Tensor | None]:
        """[rows in, channels] to [rows out, channels], and the rows that maxima came from."""
        x = self._rows("features", features, self.made._rows_in)
        argmax = None
        if self.made._kind == "max":
            argmax = x.new_empty((self.made._rows_out, x.shape[1]), dtype=torch.int32)
        return self._step(0, x, self.made._rows_out, argmax), argmax

    def backward(self, gradient: Tensor, argmax: Tensor | None) -> Tensor:
        """Gradients of the output to those of the input."""
        g = self._rows("gradient", gradient, self.made._rows_out)
        if argmax is not None:
            argmax = self._rows("argmax", argmax, self.made._rows_out, torch.int32)
            if argmax.shape != g.shape:
                raise library.refuse(f"argmax is {list(argmax.shape)}, expected {list(g.shape)}")
        return self._step(1, g, self.made._rows_in, argmax)


class Scopes(_Through):
    """Attention of points in buckets (struct pnet_buckets)."""

    def _options(self, heads: int, scale: float, log_sum: Tensor) -> library.pnet_attend_options:
        return library.pnet_attend_options(heads=heads, scale=scale, log_sum=_pointer(log_sum, c_float))

    def forward(self, qkv: Tensor, heads: int, scale: float) -> tuple[Tensor, Tensor]:
        """[rows, C] of [rows, 3 C], and log_sum float32 [rows, heads]. scale 0: the usual one."""
        rows = self.made._rows
        x = self._rows("qkv", qkv, rows)
        wide = x.shape[1] // 3
        if x.shape[1] % 3:
            raise library.refuse(f"qkv: width {x.shape[1]}, expected queries, keys and values for {heads} heads")
        result, log_sum = x.new_empty((rows, wide)), x.new_empty((rows, heads), dtype=torch.float32)
        room = self._workspace("pnet_attend_workspace", x, 0, heads, wide)
        self._run("pnet_attend_forward", [x], self._options(heads, scale, log_sum), room, result)
        return result, log_sum

    def backward(self, qkv: Tensor, result: Tensor, log_sum: Tensor, gradient: Tensor, scale: float) -> Tensor:
        """The gradient of qkv."""
        rows = self.made._rows
        x = self._rows("qkv", qkv, rows)
        out, g = (self._rows(name, given, rows, x.dtype) for name, given in (("result", result), ("gradient", gradient)))
        sums = self._rows("log_sum", log_sum, rows, torch.float32)
        found, heads = torch.empty_like(x), sums.shape[1]
        room = self._workspace("pnet_attend_workspace", x, 1, heads, out.shape[1])
        self._run("pnet_attend_backward", [x, out, g], self._options(heads, scale, sums), room, found)
        return found


def loss(kind: str, x: Tensor, y: Tensor, x_splits: Tensor | None, y_splits: Tensor | None, options: dict,
         gradients: bool) -> tuple[Tensor, Tensor, Tensor]:
    """A loss, a tensor with one number where x and y lie, and its gradients by x and y, or [0, 3]. On a GPU making points of x
    and y waits for the current stream; the loss does not."""
    if y.device != x.device:
        raise library.refuse(f"y is on {y.device}, expected {x.device}: both sets of points lie together")
    home, chosen = _device.home(x.device), arrays._loss_options(kind, options)
    both = [points(x, x_splits, name="x"), points(y, y_splits, name="y")]
    need = library.pnet_loss_bytes()
    arrays._call("pnet_loss_workspace", both, byref(chosen), byref(need))
    kept = x.new_empty(max(need.kept, 1), dtype=torch.uint8)
    room = x.new_empty(max(need.forward, need.backward, 1), dtype=torch.uint8)
    run = library.pnet_loss_run(kept=kept.data_ptr() if gradients else None, kept_bytes=need.kept, workspace=room.data_ptr(),
                                workspace_bytes=room.numel(), stream=None if home is None else home.cuda_stream or None)
    found = x.new_empty((), dtype=torch.float32)
    arrays._call("pnet_loss_forward", both, byref(chosen), byref(run), _pointer(found, c_float))
    by = [x.new_empty((given.rows if gradients else 0, 3), dtype=torch.float32) for given in both]
    if gradients:
        arrays._call("pnet_loss_backward", both, byref(chosen), byref(run), 1, *(byref(filled(g)) for g in by))
    return found, *by
