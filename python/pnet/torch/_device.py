"""The device that tensors lie on, as the library takes it: its name, the current stream, memory of PyTorch's allocator."""

from __future__ import annotations

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
_allocators: dict[int, object] = {}


def _allocator(index: int):
    """PyTorch's caching allocator of a GPU, whose callbacks get its number, from 1."""
    if index not in _allocators:
        _allocators[index] = pointer(library.pnet_allocator(context=index + 1, **_callbacks))
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
        options.allocator = _allocator(device.index)


def make(name: str, *arguments) -> c_void_p:
    """Calls a function that makes an object; where PyTorch had no memory for it, its exception is raised."""
    made = c_void_p()
    _kept.why = None
    try:
        library.call(name, *arguments, made)
    except library.Error:
        why, _kept.why = _kept.why, None
        if why is not None:
            raise why
        raise
    return made
