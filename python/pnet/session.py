"""Sessions: a model on one device, with weights, a batch and memory."""

from __future__ import annotations

import os
from ctypes import byref, c_double, c_int64, pointer
from typing import TYPE_CHECKING, Mapping, NamedTuple

import numpy

from pnet import _arrays, _library as library
from pnet._handle import Computing

if TYPE_CHECKING:
    from pnet.model import Model


class Step(NamedTuple):
    """What Session.step did."""

    gradient_norm: float  # 2-norm of the gradients, divided by the loss scale, before clipping
    skipped: bool  # the norm or a loss is not finite: nothing was changed
    steps: int  # that changed the weights so far


class Memory(NamedTuple):
    """Bytes on the session's device."""

    planned: int  # peak of a session that runs this batch alone, before it runs; 0: no batch
    used: int  # what the session has now
    peak: int  # and at most so far


def _optimizer(given: str | Mapping[str, object]) -> library.pnet_optimizer:
    settings = {"name": given} if isinstance(given, str) else dict(library.items("optimizer", given))
    if "name" not in settings:
        raise library.refuse("optimizer has no name")
    o = library.pnet_optimizer()
    library.call("pnet_optimizer_default", library.choice("optimizer", library.OPTIMIZERS, settings.pop("name")), byref(o))
    types = {name: kind for name, kind in o._fields_ if name not in ("size", "kind")}
    for name, value in settings.items():
        if name not in types:
            raise library.refuse(f"optimizer has no {name!r}, expected one of {', '.join(types)}")
        what = f"optimizer: {name}"
        setattr(o, name, library.number(what, value) if types[name] is c_double else library.flag(what, value))
    return o


def session_options(device: str | None, precision: str | None, seed: int = 0, optimizer=None, memory_limit: int = 0,
                    arrays: str = "host", stream: int = 0, allocator=None) -> library.pnet_session_options:
    """The options of the library; Session says what they are."""
    options = library.pnet_session_options(
        device=library.encode_given("device", device), precision=library.encode_given("precision", precision),
        memory_limit=library.count("memory_limit", memory_limit, 64), seed=library.count("seed", seed, 64),
        arrays=library.choice("arrays", library.ARRAYS, arrays),
        stream=library.count("stream", 0 if stream is None else stream, 64) or None)
    if allocator is not None:
        options.allocator = pointer(library.instance("allocator", allocator, library.pnet_allocator))
    if optimizer is not None:
        options.optimizer = pointer(_optimizer(optimizer))
    return options


class Session(Computing):
    """A model on one device. Calls of several threads on one session run one after another; sessions apart run at once, because
    the library runs without the GIL. A session belongs to the process that made it.

    device        "cpu", "cuda", "cuda:1"
    precision     "fp32", on a GPU also "tf32", "bf16", "fp16"; None: "fp32", or what `trained` of the model gives
    seed          0 .. 2^64 - 1, of fresh weights, dropout, and losses that draw
    optimizer     of a "train" model: "sgd", "adam", "adamw", or a dict with such a name and settings, in PyTorch's definitions:
                  {"name": "sgd", "momentum": 0.9, "nesterov": True, "weight_decay": 1e-4}, {"name": "adam", "beta1": 0.9,
                  "beta2": 0.999, "eps": 1e-8}; "decay_all": weight decay also for biases and norms, as PyTorch has it. Left out:
                  momentum is 0.9, where PyTorch's is 0, nesterov and decay_all are False, betas and eps are those above, and
                  weight_decay is 0, of "adamw" 0.01. None: no steps
    memory_limit  bytes on the device; 0: none
    arrays        "host"; or "device": arrays that calls get lie on the session's GPU, with __cuda_array_interface__, as PyTorch's
                  and CuPy's do. They are contiguous; what calls return is filled into an array `out`. Calls do not wait for the
                  GPU, but for bind, objective, step, and those that move all weights: pnet.h says which do
    stream        the address of the cudaStream_t that the session's work is part of, which lives as long as the session: of
                  PyTorch torch.cuda.Stream().cuda_stream. 0: the default stream
    allocator     a struct pnet_allocator (pnet._library) for the memory on the device, which lives as long as the session

    Weights come from init, load or copy_weights, before anything is computed; after a failure they are as before.
    """

    def __init__(self, model: Model, device: str = "cpu", precision: str | None = None, seed: int = 0,
                 optimizer: str | Mapping[str, object] | None = None, memory_limit: int = 0, arrays: str = "host",
                 stream: int = 0, allocator: library.pnet_allocator | None = None):
        from pnet.model import Model  # which imports this module

        library.instance("model", model, Model)
        options = session_options(device, precision, seed, optimizer, memory_limit, arrays, stream, allocator)
        self.own_process()
        handle = library.SESSION()
        model._call("pnet_session_new", byref(options), byref(handle))
        super().__init__("session", handle.value, "pnet_session_free")
        self.model = model
        self._there = arrays == "device"
        self._allocator = allocator  # the library calls it until the session is freed
        self._shapes = {w.name: w.shape for w in model.weights}
        self._bound = {}  # shapes of the batch's arrays

    def init(self) -> None:
        """Gives fresh weights, which depend on the seed and their names alone."""
        self._call("pnet_session_init")

    def load(self, path: str | os.PathLike) -> None:
        """Reads the weights of a safetensors file, a checkpoint or a run folder (its best checkpoint, else its last)."""
        self._call("pnet_session_load", library.encode("path", path))

    def copy_weights(self, source: Session) -> None:
        """Takes the weights of a "train" or "eval" session, by name."""
        library.instance("source", source, Session)
        # locks in one order, whichever session a thread begins with
        first, second = sorted((self, source), key=id)
        with first._hold(), second._hold():
            self._call("pnet_session_copy_weights", source._use())

    def save(self, path: str | os.PathLike) -> None:
        """"train", "eval": writes the weights to a safetensors file, which pnetc and load read. An existing file is replaced as
        a whole, or stays as it is."""
        self._call("pnet_session_save", library.encode("path", path))

    def weight(self, name: str, out=None):
        """One weight by its name: a new float32 array of the shape that Model.weights says, or `out`, filled."""
        return self._get("pnet_session_get_weight", name, out)

    def set_weight(self, name: str, value) -> None:
        """Replaces one weight: float32, of the shape that Model.weights says."""
        self._set("pnet_session_set_weight", name, value)

    def gradient(self, name: str, out=None):
        """The gradient of one trained weight, after gradients() or backward(), as weight()."""
        return self._get("pnet_session_get_gradient", name, out)

    def set_gradient(self, name: str, value) -> None:
        """Replaces the gradient of one trained weight, for example by the mean over several processes."""
        self._set("pnet_session_set_gradient", name, value)

    def _get(self, function: str, name: str, out):
        library.encode("name", name)
        # a name that is not there is for the library to refuse
        known = name in self._shapes
        to = _arrays.to_fill(name, out, self._shapes[name], self._there) if known else numpy.empty((), numpy.float32)
        return self._fill(function, name, to, out)

    def _fill(self, function: str, name: str | None, to, out):
        """Calls a function that fills an array; returns what the caller gave to be filled, or the new one."""
        named = () if name is None else (library.encode("name", name),)
        self._call(function, *named, _arrays.pointer(to), _arrays.count(to))
        return to if out is None else out

    def _set(self, function: str, name: str, value) -> None:
        library.encode("name", name)
        known = name in self._shapes
        given = _arrays.floats(name, value, self._shapes[name], self._there) if known else numpy.empty((), numpy.float32)
        self._call(function, library.encode("name", name), _arrays.pointer(given), _arrays.count(given))

    def _matrix(self, name: str, value):
        on_gpu = self._there and _arrays.lies_on_gpu(value)
        return _arrays.rows_on_gpu(name, value) if on_gpu else _arrays.rows(name, value)

    def bind(self, values: Mapping[str, object]) -> None:
        """Takes a batch of clouds and builds the geometry that the model needs from it.

        "INPUT.FIELD"  a field of an input, [rows, width] or, of one column, [rows]; types as in Field. Every field that the
                       model reads must be there, others may
        "INPUT"        of a cloud: int64 or int32 [samples + 1], the rows at which its samples begin, and last the number of
                       rows: [0, 1000, 2500] are two samples of 1000 and 1500 points. Without it the cloud is one sample.
                       Of a pose: float32 [samples, 4, 4], p_target = T p_source

        Arrays are NumPy's, or anything with __array__ or DLPack in host memory; they are read before bind returns. Rows that
        are contiguous each, as columns of a larger array, are not copied. Positions are in metres.
        Status.USAGE: a value is missing or unknown, or has the wrong type or shape. BAD_DATA: its numbers are wrong, and the
        message names the row. After a failure the session has no batch.
        """
        matrices = {name: self._matrix(name, value) for name, value in library.items("values", values)}
        with self._hold():
            self._call("pnet_session_bind", _arrays.values(matrices), len(matrices))
            self._bound = {name: m.shape for name, m in matrices.items()}

    def forward(self) -> None:
        """Computes the result, or losses and metrics, on the batch. Norms use their running statistics, and nothing is dropped
        out. NO_MEMORY comes before anything is computed."""
        self._call("pnet_session_forward")

    def result(self, out=None):
        """"infer", after forward: a new float32 array [rows, width], or `out`, filled. Points have the order of the batch;
        generated points lie behind each other, those of one row together, in the order of those rows."""
        with self._hold():
            to = _arrays.to_fill("result", out, self.result_shape(), self._there)
            return self._fill("pnet_session_result", None, to, out)

    def result_shape(self) -> tuple[int, int]:
        """"infer", after bind: rows and width of the result of this batch."""
        rows, width = c_int64(), c_int64()
        self._call("pnet_session_result_shape", byref(rows), byref(width))
        return rows.value, width.value

    def output_shape(self, name: str) -> tuple[int, int]:
        """After bind: rows and channels of one of Model.outputs in this batch, by its name."""
        rows, width = c_int64(), c_int64()
        self._call("pnet_session_output_shape", library.encode("name", name), byref(rows), byref(width))
        return rows.value, width.value

    def output_splits(self, name: str, samples: int) -> numpy.ndarray:
        """After bind: the rows at which the samples of the batch begin in an output, and last the number of rows: int64
        [samples + 1]. Error: the batch has another number of samples."""
        to = numpy.empty(library.count("samples", samples, 31) + 1, numpy.int64)
        self._call("pnet_session_output_splits", library.encode("name", name), _arrays.pointer(to, c_int64), to.size)
        return to

    def output(self, name: str, out=None):
        """After forward, forward_training, gradients or backward: an output, as a new float32 array [rows, width], or `out`,
        filled. Model.outputs says what its rows are."""
        with self._hold():
            to = _arrays.to_fill(name, out, self.output_shape(name), self._there)
            return self._fill("pnet_session_output", name, to, out)

    def objective(self, name: str) -> float:
        """"eval", "train": a loss of this batch after forward, forward_training, gradients or backward, a metric after forward. A
        metric that is not defined for the batch is NaN."""
        value = c_double()
        self._call("pnet_session_objective", library.encode("name", name), byref(value))
        return value.value

    def gradients(self, scale: float = 1.0, accumulate: bool = False) -> None:
        """"train": forward and backward on the batch, as training does it: norms use the statistics of the batch and update the
        running ones, dropout drops. Gradients are those of `scale` times the sum of the losses; with `accumulate` they are
        added to those that are there."""
        self._call("pnet_session_gradients", library.number("scale", scale), library.flag("accumulate", accumulate))

    def forward_training(self) -> None:
        """"train": the first half of gradients(), for losses of one's own: forward as training does it. Outputs and the model's
        losses can then be read."""
        self._call("pnet_session_forward_training")

    def backward(self, gradients: Mapping[str, object], scale: float = 0.0, accumulate: bool = False) -> None:
        """"train": the second half, once behind each forward_training: the gradients of the sum over outputs of
        (gradient * output).sum(), plus `scale` times the sum of the model's losses.

        gradients   of one's own loss by outputs, by name: float32 arrays as output() gives them; outputs that are not there have
                    none
        accumulate  gradients of weights are added to those that are there; those of inputs are of this batch alone
        """
        matrices = {name: self._matrix(name, value) for name, value in library.items("gradients", gradients)}
        matrices = {name: m if isinstance(m, _arrays.OnGPU) else numpy.ascontiguousarray(m) for name, m in matrices.items()}
        self._call("pnet_session_backward", _arrays.values(matrices), len(matrices), library.number("scale", scale),
                   library.flag("accumulate", accumulate))

    def input_gradient(self, name: str, out=None):
        """After gradients or backward, of a model with `input_gradients`: the gradient by a float32 field of an input,
        "cloud.rgb", as a new array [rows, width] of those that were bound, or `out`, filled. Where points lie is taken as
        constant."""
        library.encode("name", name)
        with self._hold():
            known = name in self._bound
            to = _arrays.to_fill(name, out, self._bound[name], self._there) if known else numpy.empty((0, 0), numpy.float32)
            return self._fill("pnet_session_input_gradient", name, to, out)

    def step(self, learning_rate: float, clip: float = 0.0, loss_scale: float = 1.0, wait: bool = True) -> Step | None:
        """One step of the session's optimizer. clip: the largest 2-norm of all gradients, to which they are scaled down, 0: none.
        loss_scale: the gradients are divided by it first. wait: False: the call tells nothing, and does not wait for the GPU
        where the session's arrays lie there."""
        options = library.pnet_step_options(
            learning_rate=library.number("learning_rate", learning_rate), clip=library.number("clip", clip),
            loss_scale=library.number("loss_scale", loss_scale, zero=False))
        if not wait:
            self._call("pnet_session_step", byref(options), None)
            return None
        info = library.pnet_step_info()
        self._call("pnet_session_step", byref(options), byref(info))
        return Step(info.gradient_norm, bool(info.skipped), info.steps)

    def memory(self) -> Memory:
        """What the session takes, to the byte; what handles take on the host is not in it."""
        info = library.pnet_memory_info()
        self._call("pnet_session_memory", byref(info))
        return Memory(info.planned, info.used, info.peak)
