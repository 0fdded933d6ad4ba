"""Models: a .pnet text, compiled; what it reads, what weights it has, what it computes."""

from __future__ import annotations

import functools
import numbers
import os
from ctypes import byref, c_char_p, c_double, c_size_t
from typing import Mapping, NamedTuple, Sequence

import numpy

from pnet import _library as library
from pnet._handle import Handle
from pnet.session import Session, session_options


class Diagnostic(NamedTuple):
    """An error or a warning of a model, at a place in its text."""

    kind: str  # "error", "warning"
    file: str
    line: int  # of the first character, from 1; 0: the file as a whole
    column: int
    end_line: int  # of the character after the last
    end_column: int
    message: str
    label: str | None  # a remark on the place
    help: str | None  # what to write instead, in lines


class Field(NamedTuple):
    """One array of a cloud."""

    name: str
    kind: str  # "position", "feature": float32; "class": int32 or int64, 0 .. classes - 1, or -1: ignored
    width: int  # of a row
    classes: int  # of a class, else 0
    per_cloud: bool  # one row a sample instead of one a point
    read: bool  # the model reads it; else it need not be given


class Input(NamedTuple):
    """An input of a model: a cloud of some fields, or a pose, which has none: [samples, 4, 4] float32."""

    name: str
    fields: tuple[Field, ...]
    read: bool


class Weight(NamedTuple):
    """A tensor of a weights file for this model, float32."""

    name: str
    shape: tuple[int, ...]
    trained: bool  # False: a running statistic of a norm
    folded: bool  # "infer": joined with others into one; a session cannot give or take it alone


class Objective(NamedTuple):
    """A loss or metric."""

    name: str
    metric: bool  # False: a loss


class Result(NamedTuple):
    """What a session of an "infer" model computes."""

    name: str  # path of the value
    width: int  # channels of a row
    classes: int  # they are scores of so many classes; 0: other features
    rows: str  # "points": a row for each point of `input`, in its order; "samples"; "generated": for each generated point
    input: str | None


class Output(NamedTuple):
    """A value that sessions give besides results and losses."""

    name: str  # as Model was given it
    path: str  # of the value
    width: int  # channels of a row
    rows: str  # as Result.rows; "cells": of each row of a level, by sample, then along its curve, as Points.grid has them
    input: str | None  # "points", "cells": whose points these are, or were sampled
    cell: float  # "cells": edge of a cell, metres; 0: none
    gradient: bool  # "train": something that learns leads to it


def _encoded(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError as why:
        raise library.refuse(f"text_or_path is no text: {why}") from why


def _written(name: str, value) -> str:
    """A value of a param as --set takes it."""
    if isinstance(value, (bool, numpy.bool_)):
        return "yes" if value else "no"
    if isinstance(value, numbers.Integral):
        return str(int(value))
    if isinstance(value, numbers.Real):
        return repr(float(value))
    if isinstance(value, str):
        return value
    return "[" + ", ".join(_written(name, element) for element in library.elements(f"params: {name}", value)) + "]"


def _diagnostics(handle) -> list[Diagnostic]:
    found = []
    for index in range(library.plain("pnet_model_diagnostics", handle)):
        d = library.pnet_diagnostic()
        library.call("pnet_model_diagnostic", handle, index, byref(d))
        found.append(Diagnostic(
            library.name_of(library.DIAGNOSTICS, d.kind), library.decode(d.file), d.line, d.column, d.end_line, d.end_column,
            library.decode(d.message), library.decode(d.label), library.decode(d.help)))
    return found


class Model(Handle):
    """A compiled model. It never changes: any number of threads may use it at once.

    text_or_path   the text of a model, if it is a str of several lines; else the path of a .pnet file
    params         params of the model by name: numbers, bools, lists, or a str as pnetc takes them with --set: "20cm"
    mode           "native", "voxel", or degradations: "centre,kernel"; None: that of `trained`, or native
    purpose        what sessions do: "infer" the result of a net, "eval" losses and metrics, "train" gradients and steps too
    trained        path of weights: the model is compiled in the mode and with the params that they were trained in, where
                   `mode` and `params` do not say otherwise. The weights themselves are for Session.load
    net, value     "infer": the result of this net, of the last one if None; or the value of a layer by its path
    class_weights  for losses whose `weights` the model leaves out; None: all 1
    outputs        values that sessions give besides results and losses, by the path of a layer, or by name: "y", "y[1]". A
                   "train" model with outputs needs no loss: Session.backward takes the gradients of one's own
    input_gradients  "train": also the gradients of features of inputs
    name           stands for the file in messages about a text; `include` statements are relative to it

    A model with errors raises Error, whose `diagnostics` lists them.
    """

    def __init__(self, text_or_path: str | os.PathLike, params: Mapping[str, object] = {}, mode: str | None = None,
                 purpose: str = "infer", trained: str | os.PathLike | None = None, net: str | None = None,
                 value: str | None = None, class_weights: Sequence[float] | None = None, name: str = "model.pnet",
                 outputs: Sequence[str] = (), input_gradients: bool = False):
        options = library.pnet_model_options(
            purpose=library.choice("purpose", library.PURPOSES, purpose), mode=library.encode_given("mode", mode),
            net=library.encode_given("net", net), value=library.encode_given("value", value),
            trained=library.encode_given("trained", trained), input_gradients=library.flag("input_gradients", input_gradients))
        named = [library.encode("outputs", output) for output in library.elements("outputs", outputs)]
        options.outputs, options.output_count = (c_char_p * len(named))(*named), len(named)
        sets = [library.encode("params", f"{key}={_written(key, given)}") for key, given in library.items("params", params)]
        options.params, options.param_count = (c_char_p * len(sets))(*sets), len(sets)
        if class_weights is not None:
            weights = [library.number("class_weights", weight) for weight in library.elements("class_weights", class_weights)]
            options.class_weights, options.class_weight_count = (c_double * len(weights))(*weights), len(weights)
        handle = library.MODEL()
        try:
            if isinstance(text_or_path, str) and "\n" in text_or_path:
                text = _encoded(text_or_path)
                library.call("pnet_model_compile", library.encode("name", name), text, len(text), byref(options), byref(handle))
            else:
                library.call("pnet_model_open", library.encode("text_or_path", text_or_path), byref(options), byref(handle))
        except library.Error as error:
            if handle:
                error.diagnostics = _diagnostics(handle)
                library.plain("pnet_model_free", handle)
            raise
        super().__init__("model", handle.value, "pnet_model_free")
        self.purpose = purpose

    @functools.cached_property
    def diagnostics(self) -> list[Diagnostic]:
        """The warnings."""
        with self._hold():
            return _diagnostics(self._use())

    @functools.cached_property
    def inputs(self) -> list[Input]:
        """What sessions bind."""
        return [self._input(index, info) for index, info in self._list("pnet_model_input", library.pnet_input_info)]

    def _input(self, index: int, i: library.pnet_input_info) -> Input:
        fields = []
        for number in range(i.fields):
            f = library.pnet_field_info()
            self._call("pnet_model_field", index, number, byref(f))
            fields.append(Field(library.decode(f.name), library.name_of(library.FIELDS, f.kind), f.width, f.classes,
                                bool(f.per_cloud), bool(f.read)))
        return Input(library.decode(i.name), tuple(fields), bool(i.read))

    @functools.cached_property
    def weights(self) -> list[Weight]:
        """The tensors of a weights file: the weights on which a loss, metric, output or result depends."""
        return [Weight(library.decode(w.name), tuple(w.shape[:w.dims]), bool(w.trained), bool(w.folded))
                for _, w in self._list("pnet_model_weight", library.pnet_weight_info)]

    @functools.cached_property
    def objectives(self) -> list[Objective]:
        """Losses and metrics of an "eval" or "train" model."""
        return [Objective(library.decode(o.name), bool(o.metric))
                for _, o in self._list("pnet_model_objective", library.pnet_objective_info)]

    @functools.cached_property
    def result(self) -> Result:
        """What a session of an "infer" model computes. Error: the model has another purpose."""
        r = library.pnet_result_info()
        self._call("pnet_model_result", byref(r))
        return Result(library.decode(r.name), r.width, r.classes, library.name_of(library.ROWS, r.rows), library.decode(r.input))

    @functools.cached_property
    def outputs(self) -> list[Output]:
        """The values that `outputs` named, in their order."""
        return [Output(library.decode(o.name), library.decode(o.path), o.width, library.name_of(library.ROWS, o.rows),
                       library.decode(o.input), o.cell, bool(o.gradient))
                for _, o in self._list("pnet_model_output", library.pnet_output_info)]

    def _list(self, name: str, struct: type) -> list:
        """The records of one kind, with their indices. Their texts live as long as the model."""
        with self._hold():
            found = [(index, struct()) for index in range(library.plain(name + "s", self._use()))]
            for index, record in found:
                self._call(name, index, byref(record))
            return found

    def peak(self, points: int, device: str = "cpu", precision: str | None = None) -> int:
        """The most bytes on the device that a session takes for one sample of `points` points in each cloud, assuming usual
        ratios between levels. The device need not be present."""
        peak = c_size_t()
        self._call("pnet_model_peak", byref(session_options(device, precision)), library.count("points", points, 63), byref(peak))
        return peak.value

    def session(self, device: str = "cpu", precision: str | None = None, seed: int = 0,
                optimizer: str | Mapping[str, object] | None = None, memory_limit: int = 0, arrays: str = "host",
                stream: int = 0, allocator=None) -> Session:
        """A session of this model, as Session describes it."""
        return Session(self, device, precision, seed, optimizer, memory_limit, arrays, stream, allocator)
