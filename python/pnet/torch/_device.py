"""The device that tensors lie on, as the library takes it: its name, the current stream, memory of PyTorch's allocator."""

from __future__ import annotations

import contextlib
import threading
from ctypes import c_void_p, pointer

import torch

from pnet import _library as library

_kept = threading.local()  # why there was no memory, until the call returns


# of the current GPU, which is mostly the one that memory is wanted of: they take less time than the functions that ask for one
_alloc = getattr(torch._C, "_cuda_cudaCachingAllocator_raw_alloc", None)
_delete = getattr(torch._C, "_cuda_cudaCachingAllocator_raw_delete", torch.cuda.caching_allocator_delete)


def _take(gpu: int, size: int, stream: int | None) -> int | None:
    try:
        if _alloc is not None and torch._C._cuda_getDevice() == gpu - 1:
            return _alloc(size, stream or 0)
        return torch.cuda.caching_allocator_alloc(size, gpu - 1, stream or 0)
    except BaseException as why:  # nothing may leave a callback
        _kept.why = why
        return None


def _give(_, memory: int, size: int, stream: int | None) -> None:
    _delete(memory)


_callbacks = {"take": library.TAKE(_take), "give": library.GIVE(_give)}
_allocators: dict[int, library.pnet_allocator] = {}


def allocator(index: int) -> library.pnet_allocator:
    """PyTorch's caching allocator of a GPU, whose callbacks get its number, from 1."""
    if index not in _allocators:
        _allocators[index] = library.pnet_allocator(context=index + 1, **_callbacks)
    return _allocators[index]


raw_stream = torch._C._cuda_getCurrentRawStream if hasattr(torch._C, "_cuda_getCurrentRawStream") else (
    lambda index: torch.cuda.current_stream(index).cuda_stream)


def check(device: torch.device) -> None:
    """Raises Error unless sets can lie there."""
    if device.type not in ("cpu", "cuda"):
        raise library.refuse(f"tensors are on {device}: pnet.torch computes on the CPU and on NVIDIA GPUs")


def place(device: torch.device, options) -> None:
    """Fills in the members device, stream and allocator of a struct of options."""
    check(device)
    if device.type == "cuda":
        options.device = b"cuda:%d" % device.index
        options.stream = raw_stream(device.index) or None
        options.allocator = pointer(allocator(device.index))


@contextlib.contextmanager
def own_errors():
    """Where PyTorch had no memory for a call of the library, its own exception is raised."""
    _kept.why = None
    try:
        yield
    except library.Error:
        why, _kept.why = _kept.why, None
        if why is not None:
            raise why
        raise


def make(name: str, *arguments) -> c_void_p:
    """Calls a function that makes an object."""
    made = c_void_p()
    with own_errors():
        library.call(name, *arguments, made)
    return made


def home(device: torch.device) -> torch.cuda.Stream | None:
    """The stream of what is made now: the current one of a GPU."""
    check(device)
    return torch.cuda.current_stream(device) if device.type == "cuda" else None


@contextlib.contextmanager
def on_home(stream: torch.cuda.Stream | None):
    """Calls inside put their work on this stream: it comes behind what the current stream has, and before what that gets then."""
    current = None if stream is None else torch.cuda.current_stream(stream.device)
    away = current is not None and current.cuda_stream != stream.cuda_stream
    if away:
        stream.wait_stream(current)
    yield
    if away:
        current.wait_stream(stream)


@contextlib.contextmanager
def reading(stream: torch.cuda.Stream | None):
    """Gives the number of the current stream, for calls that read there what was made on `stream`: whose memory goes back to that
    stream, so that it must know of them."""
    if stream is None:
        yield 0
        return
    current = raw_stream(stream.device.index)
    yield current
    # a graph that is recorded keeps its work to itself; what it reads lives as long as the graph
    if current != stream.cuda_stream and not torch.cuda.is_current_stream_capturing():
        stream.wait_stream(torch.cuda.current_stream(stream.device))
