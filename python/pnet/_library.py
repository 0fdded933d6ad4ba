"""What include/pnet.h declares, by ctypes, under the same names. tests/test_header.py compares all of it with the header."""

from __future__ import annotations

import enum
import math
import operator
import os
from ctypes import (
    CDLL, CFUNCTYPE, POINTER, Structure, byref, c_char, c_char_p, c_double, c_float, c_int, c_int32, c_int64, c_size_t, c_uint64,
    c_void_p, sizeof,
)

ABI = 0
VERSION = "0.1.0"


class Status(enum.IntEnum):
    """Why a call failed, as enum pnet_status."""

    OK = 0
    FAILED = 1
    USAGE = 2
    BAD_MODEL = 3
    BAD_DATA = 4
    NO_MEMORY = 5
    NO_DEVICE = 6
    INTERRUPTED = 130


# The other enums: their prefix in the header, and what follows it, in lower case.
PURPOSES = {"infer": 0, "eval": 1, "train": 2}
DIAGNOSTICS = {"error": 0, "warning": 1}
FIELDS = {"position": 0, "feature": 1, "class": 2}
ROWS = {"points": 0, "samples": 1, "generated": 2, "cells": 3}
OPTIMIZERS = {"sgd": 0, "adam": 1, "adamw": 2}
ARRAYS = {"host": 0, "device": 1}
DTYPES = {"f32": 0, "i32": 1, "i64": 2, "bf16": 3, "f16": 4}
SETS = {"submanifold": 0, "strided": 1, "transposed": 2}
PRODUCTS = {"as_stored": 0, "fp32": 1, "tf32": 2, "bf16": 3, "fp16": 4}
CONVS = {"forward": 0, "grad_input": 1, "grad_weight": 2}
POOLINGS = {"max": 0, "mean": 1, "sum": 2}
SHAPES = {"ball": 0, "cube": 1}
DEGRADATIONS = {"centre": 1, "neighbour": 2, "kernel": 4, "voxel": 7}
MAPS = {"mean": 0, "max": 1, "sum": 2, "parent": 3, "inverse_distance": 4, "trilinear": 5, "nearest": 6}
ORDERS = {"z": 0, "z_trans": 1, "hilbert": 2, "hilbert_trans": 3, "xor_div": 4, "xor_mod": 5, "z_mod": 6}
LOSSES = {"chamfer": 0, "dcd": 1, "hypercd": 2, "infocd": 3, "emd": 4, "sinkhorn": 5, "apml": 6}
ENUMS = {
    "PNET_PURPOSE_": PURPOSES,
    "PNET_DIAGNOSTIC_": DIAGNOSTICS,
    "PNET_FIELD_": FIELDS,
    "PNET_ROWS_": ROWS,
    "PNET_OPTIMIZER_": OPTIMIZERS,
    "PNET_ARRAYS_": ARRAYS,
    "PNET_DTYPE_": DTYPES,
    "PNET_SET_": SETS,
    "PNET_CONV_": CONVS,
    "PNET_PRODUCTS_": PRODUCTS,
    "PNET_POOLING_": POOLINGS,
    "PNET_NEAR_": SHAPES,
    "PNET_DEGRADE_": DEGRADATIONS,
    "PNET_MAP_": MAPS,
    "PNET_BUCKETS_": ORDERS,
    "PNET_LOSS_": LOSSES,
}


# Members of pnet_allocator.
TAKE = CFUNCTYPE(c_void_p, c_void_p, c_size_t, c_void_p)
GIVE = CFUNCTYPE(None, c_void_p, c_void_p, c_size_t, c_void_p)


class Sized(Structure):
    """A struct that begins with its size."""

    def __init__(self, **members):
        super().__init__(size=sizeof(self), **members)


class pnet_error(Structure):
    _fields_ = [("status", c_int), ("message", c_char * 1024)]


class pnet_model_options(Sized):
    _fields_ = [
        ("size", c_size_t),
        ("purpose", c_int),
        ("mode", c_char_p),
        ("params", POINTER(c_char_p)),
        ("param_count", c_size_t),
        ("net", c_char_p),
        ("value", c_char_p),
        ("trained", c_char_p),
        ("class_weights", POINTER(c_double)),
        ("class_weight_count", c_size_t),
        ("outputs", POINTER(c_char_p)),
        ("output_count", c_size_t),
        ("input_gradients", c_int),
    ]


class pnet_diagnostic(Sized):
    _fields_ = [
        ("size", c_size_t),
        ("kind", c_int),
        ("file", c_char_p),
        ("line", c_int32),
        ("column", c_int32),
        ("end_line", c_int32),
        ("end_column", c_int32),
        ("message", c_char_p),
        ("label", c_char_p),
        ("help", c_char_p),
    ]


class pnet_input_info(Sized):
    _fields_ = [("size", c_size_t), ("name", c_char_p), ("fields", c_size_t), ("read", c_int)]


class pnet_field_info(Sized):
    _fields_ = [
        ("size", c_size_t),
        ("name", c_char_p),
        ("kind", c_int),
        ("width", c_int32),
        ("classes", c_int32),
        ("per_cloud", c_int),
        ("read", c_int),
    ]


class pnet_weight_info(Sized):
    _fields_ = [
        ("size", c_size_t),
        ("name", c_char_p),
        ("dims", c_int32),
        ("shape", c_int64 * 4),
        ("count", c_int64),
        ("trained", c_int),
        ("folded", c_int),
    ]


class pnet_objective_info(Sized):
    _fields_ = [("size", c_size_t), ("name", c_char_p), ("metric", c_int)]


class pnet_result_info(Sized):
    _fields_ = [
        ("size", c_size_t),
        ("name", c_char_p),
        ("width", c_int32),
        ("classes", c_int32),
        ("rows", c_int),
        ("input", c_char_p),
    ]


class pnet_output_info(Sized):
    _fields_ = [
        ("size", c_size_t),
        ("name", c_char_p),
        ("path", c_char_p),
        ("width", c_int32),
        ("rows", c_int),
        ("input", c_char_p),
        ("cell", c_double),
        ("gradient", c_int),
    ]


class pnet_optimizer(Sized):
    _fields_ = [
        ("size", c_size_t),
        ("kind", c_int),
        ("momentum", c_double),
        ("nesterov", c_int),
        ("beta1", c_double),
        ("beta2", c_double),
        ("eps", c_double),
        ("weight_decay", c_double),
        ("decay_all", c_int),
    ]


class pnet_allocator(Sized):
    _fields_ = [("size", c_size_t), ("context", c_void_p), ("take", TAKE), ("give", GIVE)]


class pnet_session_options(Sized):
    _fields_ = [
        ("size", c_size_t),
        ("device", c_char_p),
        ("precision", c_char_p),
        ("memory_limit", c_size_t),
        ("seed", c_uint64),
        ("optimizer", POINTER(pnet_optimizer)),
        ("arrays", c_int),
        ("stream", c_void_p),
        ("allocator", POINTER(pnet_allocator)),
    ]


class pnet_array(Structure):
    _fields_ = [("data", c_void_p), ("dtype", c_int), ("rows", c_int64), ("width", c_int64), ("stride", c_int64)]


class pnet_value(Structure):
    _fields_ = [("name", c_char_p), ("array", pnet_array)]


class pnet_step_options(Sized):
    _fields_ = [("size", c_size_t), ("learning_rate", c_double), ("clip", c_double), ("loss_scale", c_double)]


class pnet_step_info(Sized):
    _fields_ = [("size", c_size_t), ("gradient_norm", c_double), ("skipped", c_int), ("steps", c_int64)]


class pnet_memory_info(Sized):
    _fields_ = [("size", c_size_t), ("planned", c_size_t), ("used", c_size_t), ("peak", c_size_t)]


class pnet_voxel_options(Sized):
    _fields_ = [
        ("size", c_size_t),
        ("kind", c_int),
        ("extent", c_int32 * 3),
        ("kernel", c_int32 * 3),
        ("stride", c_int32 * 3),
        ("padding", c_int32 * 3),
        ("dilation", c_int32 * 3),
        ("output_padding", c_int32 * 3),
        ("batches", c_int32),
        ("device", c_char_p),
        ("stream", c_void_p),
        ("allocator", POINTER(pnet_allocator)),
    ]


class pnet_triplet_options(Sized):
    _fields_ = [
        ("size", c_size_t),
        ("device", c_char_p),
        ("stream", c_void_p),
        ("allocator", POINTER(pnet_allocator)),
    ]


class pnet_set_info(Sized):
    _fields_ = [
        ("size", c_size_t),
        ("rows_in", c_int64),
        ("rows_out", c_int64),
        ("triplets", c_int64),
        ("taps", c_int32),
        ("axes", c_int32),
        ("batches", c_int32),
        ("extent_in", c_int32 * 3),
        ("extent_out", c_int32 * 3),
    ]


class pnet_packed(Sized):
    _fields_ = [
        ("size", c_size_t),
        ("rows_in", c_int64),
        ("rows_out", c_int64),
        ("triplets", c_int64),
        ("taps", c_int32),
        ("by_out_bytes", c_size_t),
        ("by_in_bytes", c_size_t),
        ("by_out", c_void_p),
        ("by_in", c_void_p),
        ("device", c_char_p),
        ("stream", c_void_p),
        ("allocator", POINTER(pnet_allocator)),
    ]


class pnet_array_out(Structure):
    _fields_ = [("data", c_void_p), ("dtype", c_int), ("rows", c_int64), ("width", c_int64), ("stride", c_int64)]


class pnet_conv_options(Sized):
    _fields_ = [
        ("size", c_size_t),
        ("groups", c_int32),
        ("bias", POINTER(c_float)),
        ("accumulate", c_int),
        ("workspace", c_void_p),
        ("workspace_bytes", c_size_t),
        ("stream", c_void_p),
        ("precision", c_int),
    ]


class pnet_pool_options(Sized):
    _fields_ = [("size", c_size_t), ("stream", c_void_p)]


class pnet_points_options(Sized):
    _fields_ = [
        ("size", c_size_t),
        ("row_splits", POINTER(pnet_array)),
        ("sample", POINTER(pnet_array)),
        ("batches", c_int32),
        ("cell", c_double),
        ("device", c_char_p),
        ("stream", c_void_p),
        ("allocator", POINTER(pnet_allocator)),
    ]


class pnet_points_info(Sized):
    _fields_ = [("size", c_size_t), ("rows", c_int64), ("batches", c_int32), ("cell", c_double)]


class pnet_near_options(Sized):
    _fields_ = [
        ("size", c_size_t),
        ("kernel", c_int32),
        ("radius", c_double),
        ("knn", c_int32),
        ("shape", c_int),
        ("degrade", c_int32),
    ]


class pnet_map_options(Sized):
    _fields_ = [("size", c_size_t), ("kind", c_int), ("k", c_int32), ("outside_nearest", c_int)]


class pnet_map_run(Sized):
    _fields_ = [
        ("size", c_size_t),
        ("argmax", POINTER(c_int32)),
        ("accumulate", c_int),
        ("workspace", c_void_p),
        ("workspace_bytes", c_size_t),
        ("stream", c_void_p),
    ]


class pnet_buckets_options(Sized):
    _fields_ = [
        ("size", c_size_t),
        ("order", c_int),
        ("bucket", c_int32),
        ("scope", c_int32),
        ("shift", c_int32),
        ("stride", c_int32),
        ("wrap", c_int),
        ("cell", c_double),
    ]


class pnet_attend_options(Sized):
    _fields_ = [
        ("size", c_size_t),
        ("heads", c_int32),
        ("scale", c_double),
        ("log_sum", POINTER(c_float)),
        ("accumulate", c_int),
        ("workspace", c_void_p),
        ("workspace_bytes", c_size_t),
        ("stream", c_void_p),
    ]


class pnet_loss_options(Sized):
    _fields_ = [
        ("size", c_size_t),
        ("kind", c_int),
        ("squares", c_int),
        ("at_least_one", c_int),
        ("sums", c_int),
        ("rounds", c_int32),
        ("alpha", c_double),
        ("lambda", c_double),
        ("tau", c_double),
        ("eps", c_double),
        ("blur", c_double),
        ("scaling", c_double),
        ("p", c_double),
        ("most", c_int32),
        ("entries", c_int32),
    ]


class pnet_loss_bytes(Sized):
    _fields_ = [("size", c_size_t), ("kept", c_size_t), ("forward", c_size_t), ("backward", c_size_t)]


class pnet_loss_run(Sized):
    _fields_ = [
        ("size", c_size_t),
        ("kept", c_void_p),
        ("kept_bytes", c_size_t),
        ("accumulate", c_int),
        ("workspace", c_void_p),
        ("workspace_bytes", c_size_t),
        ("factor", POINTER(c_float)),
        ("stream", c_void_p),
    ]


MODEL = SESSION = SET = POINTS = MAP = BUCKETS = c_void_p  # opaque handles
_ARRAY, _OUT, _CONV = POINTER(pnet_array), POINTER(pnet_array_out), POINTER(pnet_conv_options)
_RUN, _ATTEND = POINTER(pnet_map_run), POINTER(pnet_attend_options)
_LOSS, _LOSS_RUN = POINTER(pnet_loss_options), POINTER(pnet_loss_run)

# Functions that can fail: the arguments before the last one, struct pnet_error *. They return enum pnet_status.
FALLIBLE = {
    "pnet_model_compile": [c_char_p, c_char_p, c_size_t, POINTER(pnet_model_options), POINTER(MODEL)],
    "pnet_model_open": [c_char_p, POINTER(pnet_model_options), POINTER(MODEL)],
    "pnet_model_diagnostic": [MODEL, c_size_t, POINTER(pnet_diagnostic)],
    "pnet_model_input": [MODEL, c_size_t, POINTER(pnet_input_info)],
    "pnet_model_field": [MODEL, c_size_t, c_size_t, POINTER(pnet_field_info)],
    "pnet_model_weight": [MODEL, c_size_t, POINTER(pnet_weight_info)],
    "pnet_model_objective": [MODEL, c_size_t, POINTER(pnet_objective_info)],
    "pnet_model_result": [MODEL, POINTER(pnet_result_info)],
    "pnet_model_output": [MODEL, c_size_t, POINTER(pnet_output_info)],
    "pnet_model_peak": [MODEL, POINTER(pnet_session_options), c_int64, POINTER(c_size_t)],
    "pnet_optimizer_default": [c_int, POINTER(pnet_optimizer)],
    "pnet_session_new": [MODEL, POINTER(pnet_session_options), POINTER(SESSION)],
    "pnet_session_init": [SESSION],
    "pnet_session_load": [SESSION, c_char_p],
    "pnet_session_copy_weights": [SESSION, SESSION],
    "pnet_session_save": [SESSION, c_char_p],
    "pnet_session_get_weight": [SESSION, c_char_p, POINTER(c_float), c_int64],
    "pnet_session_set_weight": [SESSION, c_char_p, POINTER(c_float), c_int64],
    "pnet_session_bind": [SESSION, POINTER(pnet_value), c_size_t],
    "pnet_session_forward": [SESSION],
    "pnet_session_result_shape": [SESSION, POINTER(c_int64), POINTER(c_int64)],
    "pnet_session_result": [SESSION, POINTER(c_float), c_int64],
    "pnet_session_output_shape": [SESSION, c_char_p, POINTER(c_int64), POINTER(c_int64)],
    "pnet_session_output_splits": [SESSION, c_char_p, POINTER(c_int64), c_int64],
    "pnet_session_output": [SESSION, c_char_p, POINTER(c_float), c_int64],
    "pnet_session_objective": [SESSION, c_char_p, POINTER(c_double)],
    "pnet_session_gradients": [SESSION, c_float, c_int],
    "pnet_session_forward_training": [SESSION],
    "pnet_session_backward": [SESSION, POINTER(pnet_value), c_size_t, c_float, c_int],
    "pnet_session_input_gradient": [SESSION, c_char_p, POINTER(c_float), c_int64],
    "pnet_session_get_gradient": [SESSION, c_char_p, POINTER(c_float), c_int64],
    "pnet_session_set_gradient": [SESSION, c_char_p, POINTER(c_float), c_int64],
    "pnet_session_step": [SESSION, POINTER(pnet_step_options), POINTER(pnet_step_info)],
    "pnet_session_memory": [SESSION, POINTER(pnet_memory_info)],
    "pnet_set_voxels": [_ARRAY, POINTER(pnet_voxel_options), POINTER(SET)],
    "pnet_set_inverse": [SET, POINTER(SET)],
    "pnet_set_triplets": [
        _ARRAY, _ARRAY, _ARRAY, c_int64, c_int64, c_int32, POINTER(pnet_triplet_options), POINTER(SET)
    ],
    "pnet_set_counts": [SET, POINTER(pnet_set_info)],
    "pnet_set_indices": [SET, POINTER(c_int32), c_int64],
    "pnet_set_get_triplets": [SET, POINTER(c_int32), POINTER(c_int32), POINTER(c_int32), c_int64],
    "pnet_conv_workspace": [SET, c_int, c_int32, c_int32, c_int32, POINTER(c_size_t)],
    "pnet_conv_forward": [SET, _ARRAY, _ARRAY, _CONV, _OUT],
    "pnet_conv_grad_input": [SET, _ARRAY, _ARRAY, _CONV, _OUT],
    "pnet_conv_grad_weight": [SET, _ARRAY, _ARRAY, _CONV, _OUT],
    "pnet_pool_forward": [SET, c_int, _ARRAY, POINTER(pnet_pool_options), _OUT, _OUT],
    "pnet_pool_backward": [SET, c_int, _ARRAY, _ARRAY, POINTER(pnet_pool_options), _OUT],
    "pnet_set_packed_sizes": [SET, POINTER(pnet_packed)],
    "pnet_set_pack": [SET, POINTER(pnet_packed)],
    "pnet_set_unpack": [POINTER(pnet_packed), POINTER(SET)],
    "pnet_points_new": [_ARRAY, POINTER(pnet_points_options), POINTER(POINTS)],
    "pnet_points_grid": [POINTS, c_double, POINTER(POINTS)],
    "pnet_points_counts": [POINTS, POINTER(pnet_points_info)],
    "pnet_points_positions": [POINTS, _OUT],
    "pnet_points_samples": [POINTS, _OUT],
    "pnet_points_sources": [POINTS, _OUT],
    "pnet_points_parents": [POINTS, POINTS, _OUT],
    "pnet_set_points": [POINTS, POINTS, POINTER(pnet_near_options), POINTER(SET)],
    "pnet_map_new": [POINTS, POINTS, POINTER(pnet_map_options), POINTER(MAP)],
    "pnet_map_workspace": [MAP, c_int, c_int32, POINTER(c_size_t)],
    "pnet_map_forward": [MAP, _ARRAY, _RUN, _OUT],
    "pnet_map_backward": [MAP, _ARRAY, _RUN, _OUT],
    "pnet_buckets_new": [POINTS, POINTER(pnet_buckets_options), POINTER(BUCKETS)],
    "pnet_attend_workspace": [BUCKETS, c_int, c_int32, c_int32, POINTER(c_size_t)],
    "pnet_attend_forward": [BUCKETS, _ARRAY, _ATTEND, _OUT],
    "pnet_attend_backward": [BUCKETS, _ARRAY, _ARRAY, _ARRAY, _ATTEND, _OUT],
    "pnet_loss_default": [c_int, _LOSS],
    "pnet_loss_workspace": [POINTS, POINTS, _LOSS, POINTER(pnet_loss_bytes)],
    "pnet_loss_forward": [POINTS, POINTS, _LOSS, _LOSS_RUN, POINTER(c_float)],
    "pnet_loss_backward": [POINTS, POINTS, _LOSS, _LOSS_RUN, c_float, _OUT, _OUT],
}
# The others: what they return, and their arguments.
PLAIN = {
    "pnet_abi": (c_int, []),
    "pnet_version": (c_char_p, []),
    "pnet_model_free": (None, [MODEL]),
    "pnet_model_diagnostics": (c_size_t, [MODEL]),
    "pnet_model_inputs": (c_size_t, [MODEL]),
    "pnet_model_weights": (c_size_t, [MODEL]),
    "pnet_model_objectives": (c_size_t, [MODEL]),
    "pnet_model_outputs": (c_size_t, [MODEL]),
    "pnet_session_free": (None, [SESSION]),
    "pnet_set_free": (None, [SET]),
    "pnet_points_free": (None, [POINTS]),
    "pnet_map_free": (None, [MAP]),
    "pnet_buckets_free": (None, [BUCKETS]),
}


class Error(Exception):
    """Something failed. Every object can still be used.

    status       a Status
    message      a sentence, the same that pnetc prints
    diagnostics  where a model is wrong: its errors and warnings, a list of Diagnostic; else an empty list
    """

    def __init__(self, status: Status, message: str, diagnostics=()):
        super().__init__(message)
        self.status = Status(status)
        self.message = message
        self.diagnostics = list(diagnostics)

    def __reduce__(self):
        return type(self), (self.status, self.message, self.diagnostics)


class WrongValue(Error, ValueError):
    """An argument, or a number in an array, is wrong: Status.USAGE or BAD_DATA."""


class WrongClass(Error, TypeError):
    """An argument is of a wrong class; the message names the argument, the class expected and the class given."""


def _open() -> CDLL:
    """Loads the library that lies in the package, or else that of the system, and declares its functions."""
    path = os.path.join(os.path.dirname(__file__), "libpnet.so")
    found = CDLL(path if os.path.exists(path) else f"libpnet.so.{ABI}")
    for name, (result, arguments) in PLAIN.items():
        function = getattr(found, name)
        function.restype, function.argtypes = result, arguments
    for name, arguments in FALLIBLE.items():
        function = getattr(found, name)
        function.restype, function.argtypes = c_int, [*arguments, POINTER(pnet_error)]
    is_version = found.pnet_version().decode()
    # ABI 0 promises nothing from one version to the next
    if found.pnet_abi() != ABI or (ABI == 0 and is_version != VERSION):
        raise ImportError(f"the library is pnet {is_version}, and this package is for pnet {VERSION}")
    return found


_functions = _open()


def version() -> str:
    """The version of the library that is loaded."""
    return _functions.pnet_version().decode()


def untyped(name: str, count: int):
    """A function that can fail and takes so many pointers, the error among them, for callers that have addresses as integers."""
    found = _functions[name]  # another object than call() uses
    found.restype, found.argtypes = c_int, [c_void_p] * count
    return found


def plain(name: str, *arguments):
    """Calls a function that cannot fail."""
    return getattr(_functions, name)(*arguments)


def call(name: str, *arguments) -> None:
    """Calls a function that can fail. Other threads run meanwhile: ctypes releases the GIL."""
    error = pnet_error()
    status = getattr(_functions, name)(*arguments, byref(error))
    if status:
        raise failed(status, error)


def failed(status: int, error: pnet_error) -> Error:
    """The exception of a call that failed."""
    kind = WrongValue if status in (Status.USAGE, Status.BAD_DATA) else Error
    return kind(Status(status), decode(error.message))


def refuse(message: str) -> Error:
    """The error of a wrong argument."""
    return WrongValue(Status.USAGE, message)


def refuse_data(message: str) -> Error:
    """The error of wrong numbers in an array."""
    return WrongValue(Status.BAD_DATA, message)


def class_name(found: type) -> str:
    return found.__qualname__ if found.__module__ == "builtins" else f"{found.__module__}.{found.__qualname__}"


def wrong_class(what: str, value, expected: str) -> WrongClass:
    """The error of an argument that is no `expected`."""
    plain = value is None or isinstance(value, (str, bytes, int, float, complex))
    given = repr(value)[:200] if plain else f"of class {class_name(type(value))}"
    return WrongClass(Status.USAGE, f"{what} is {given}, expected {expected}")


def instance(what: str, value, expected: type):
    """The value, which must be of this class."""
    if not isinstance(value, expected):
        raise wrong_class(what, value, class_name(expected))
    return value


def decode(text: bytes | None) -> str | None:
    """A text of the library; bytes of a file's name may be no UTF-8."""
    return None if text is None else text.decode("utf-8", "replace")


def encode(what: str, text) -> bytes:
    """A text or path for the library."""
    if not isinstance(text, (str, bytes, os.PathLike)):
        raise wrong_class(what, text, "str or a path")
    try:
        given = os.fsencode(text)
    except UnicodeEncodeError as why:
        raise refuse(f"{what} is no text: {why}") from why
    if b"\0" in given:
        raise refuse(f"{what} has a zero byte: {text!r}")
    return given


def encode_given(what: str, text) -> bytes | None:
    """The same of an argument that may be left out: None stays None."""
    return None if text is None else encode(what, text)


def items(what: str, value) -> list[tuple]:
    """The names and values of a mapping."""
    if not hasattr(value, "items") or isinstance(value, type):
        raise wrong_class(what, value, "a dict")
    return list(value.items())


def elements(what: str, value) -> list:
    """The elements of a sequence that is no text."""
    if isinstance(value, (str, bytes)) or not hasattr(value, "__iter__") and not hasattr(value, "__getitem__"):
        raise wrong_class(what, value, "a list or tuple")
    try:
        return list(value)
    except TypeError as why:  # an array without dimensions, for example
        raise wrong_class(what, value, "a list or tuple") from why


def choice(what: str, values: dict, name: str) -> int:
    """The number of a name."""
    if not isinstance(name, str):
        raise wrong_class(what, name, f"one of {', '.join(values)}")
    if name not in values:
        raise refuse(f"{what} is {name!r}, expected one of {', '.join(values)}")
    return values[name]


def name_of(values: dict, number: int) -> str:
    """The name of a number."""
    return next(name for name, value in values.items() if value == number)


# The least numbers of an axis; 0 would tell the library that a stride or dilation is not given.
LEAST = {"extent": 1, "spatial_shape": 1, "kernel": 1, "kernel_size": 1, "stride": 1, "dilation": 1}


def is_bool(value) -> bool:
    """A bool of Python, NumPy or PyTorch: Python takes some of them for integers."""
    return isinstance(value, bool) or str(getattr(value, "dtype", "")) in ("bool", "torch.bool")


def number(what: str, value, zero: bool = True) -> float:
    """A finite number: of Python or NumPy, or in a tensor or array of one number. zero=False refuses 0, which tells the library
    that the number is not given."""
    if type(value) is not float:
        value = _real(what, value)
    if not math.isfinite(value) or not (zero or value):
        raise refuse(f"{what} is {value}, expected a finite number{'' if zero else ' other than 0'}")
    return value


def _real(what: str, value) -> float:
    if is_bool(value) or not (hasattr(value, "__float__") or hasattr(value, "__index__")):
        raise wrong_class(what, value, "a number")
    if getattr(value, "ndim", 0):
        raise wrong_class(what, value, "one number")
    if getattr(value, "requires_grad", False):
        raise wrong_class(what, value, "a number: there is no gradient by it")
    try:
        return float(value)
    except OverflowError:
        raise refuse(f"{what} is an integer beyond all of float64, expected a finite number") from None
    except (TypeError, ValueError, RuntimeError):
        raise wrong_class(what, value, "a number") from None


def count(what: str, value, bits: int, least: int = 0) -> int:
    """An integer from `least` on, of so many bits, which ctypes would cut off in silence: of Python or NumPy, or in a tensor or
    array of one number."""
    if type(value) is not int:
        value = _integer(what, value)
    if not least <= value < 1 << bits:
        raise refuse(f"{what} is {value}, expected {least} .. {(1 << bits) - 1}")
    return value


def _integer(what: str, value) -> int:
    if is_bool(value) or getattr(value, "ndim", 0):
        raise wrong_class(what, value, "an integer")
    try:
        return operator.index(value)
    except (TypeError, ValueError, RuntimeError):
        raise wrong_class(what, value, "an integer") from None


def is_single(value) -> bool:
    """Whether it is no list of numbers."""
    return type(value) is int or not hasattr(value, "__len__") or getattr(value, "ndim", 1) == 0


def per_axis(what: str, value, axes: int) -> list[int]:
    """One integer of every axis, or one for all of them, each at least LEAST, or else 0."""
    numbers = [value] * axes if is_single(value) else list(value)
    if len(numbers) != axes:
        raise refuse(f"{what} has {len(numbers)} numbers for {axes} axes")
    least = LEAST.get(what, 0)
    return [count(what, number, 31, least) for number in numbers]


def flag(what: str, value) -> bool:
    """A bool, or 0 or 1."""
    if type(value) is not bool:
        if getattr(value, "ndim", 0) or not (is_bool(value) or hasattr(value, "__index__")):
            raise wrong_class(what, value, "a bool")
        if not is_bool(value):
            count(what, value, 1)
    return bool(value)
