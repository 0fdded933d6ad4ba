"""Points and their levels, and what goes between them without a model: convolution, pooling, interpolation, attention, losses."""

from __future__ import annotations

from contextlib import ExitStack
from ctypes import POINTER, byref, c_float, c_int32, c_void_p

import numpy

from pnet import _arrays, _handle
from pnet import _library as library
from pnet.voxels import VoxelSet


def _out(array: numpy.ndarray) -> library.pnet_array_out:
    """A contiguous matrix, or column, that a function fills; it must live as long as this is used."""
    rows, width = array.shape if array.ndim == 2 else (len(array), 1)
    return library.pnet_array_out(data=array.__array_interface__["data"][0], rows=rows, width=width,
                                  dtype=library.DTYPES["i32" if array.dtype == numpy.int32 else "f32"])


def _features(name: str, value, rows: int) -> numpy.ndarray:
    given = _arrays.to_numpy(name, value)
    if given.ndim != 2 or given.shape[0] != rows:
        raise library.refuse(f"{name} is {list(given.shape)}, expected [{rows}, channels]")
    return _arrays.floats(name, given, given.shape)


def _given(**points) -> list[Points]:
    """Arguments, by their names, that must be points."""
    return [library.instance(what, one, Points) for what, one in points.items()]


def _call(name: str, points: list[Points], *arguments) -> None:
    """Calls a function whose first arguments are points, with the locks of all in one order."""
    with ExitStack() as locks:
        for one in sorted(points, key=id):
            locks.enter_context(one._hold())
        library.call(name, *(one._use() for one in points), *arguments)


def optional(what: str, value: float | None) -> float:
    """A number as the library takes it, 0: not given, which only None says here."""
    return 0 if value is None else library.number(what, value, zero=False)


def points_options(batches: int | None, cell: float | None) -> library.pnet_points_options:
    """The options of pnet_points_new without arrays and device; None: not given."""
    samples = 0 if batches is None else library.count("batches", batches, 31, 1)
    return library.pnet_points_options(batches=samples, cell=optional("cell", cell))


class Points(_handle.Computing):
    """Points of a batch, or a level that was sampled from them. They never change, so threads may share them.

    positions   float32 [rows, 3], metres, rows in any order
    row_splits  int32 or int64 [samples + 1]: where samples begin, and the end; or
    sample      int32 or int64 [rows]: the sample of each row, of `batches`; None: there is one
    cell        metres: the finest cells that will be sampled, along which points lie inside; None: along cells of their own

    Raises Error: status BAD_DATA names the row of a coordinate that is not finite, or of a wrong sample.
    """

    def __init__(self, positions, *, row_splits=None, sample=None, batches: int | None = None, cell: float | None = None):
        given = _arrays.rows("positions", positions)
        options = points_options(batches, cell)
        kept = []  # until the call ends
        for name, value in (("row_splits", row_splits), ("sample", sample)):
            if value is not None:
                kept.append(_arrays.rows(name, value))
                setattr(options, name, POINTER(library.pnet_array)(_arrays.describe(kept[-1])))
        made = c_void_p()
        self.own_process()
        library.call("pnet_points_new", byref(_arrays.describe(given)), byref(options), byref(made))
        self._begin(made)

    def _begin(self, made: c_void_p) -> None:
        super().__init__("set of points", made.value, "pnet_points_free")
        self._info = library.pnet_points_info()
        self._call("pnet_points_counts", byref(self._info))

    @classmethod
    def _of(cls, made: c_void_p) -> Points:
        """Points that the library has made."""
        found = cls.__new__(cls)
        found._begin(made)
        return found

    def grid(self, cell: float) -> Points:
        """The level with these cells, metres: each cell with points keeps the one nearest to its centre. The cells of a level of
        a level are a whole multiple of its own: p.grid(v), p.grid(v).grid(2 * v) are grid(p, v * [1, 2]) of a model."""
        made = c_void_p()
        self._call("pnet_points_grid", library.number("cell", cell, zero=False), byref(made))
        return self._of(made)

    @property
    def rows(self) -> int:
        return self._info.rows

    @property
    def batches(self) -> int:
        """Samples."""
        return self._info.batches

    @property
    def cell(self) -> float:
        """The edge of a level's cells, metres; 0: these are no level."""
        return self._info.cell

    def _get(self, name: str, width: int = 0) -> numpy.ndarray:
        found = numpy.empty((self.rows, width), numpy.float32) if width else numpy.empty(self.rows, numpy.int32)
        self._call(name, byref(_out(found)))
        return found

    def positions(self) -> numpy.ndarray:
        """float32 [rows, 3]."""
        return self._get("pnet_points_positions", 3)

    def samples(self) -> numpy.ndarray:
        """The sample of each row, int32 [rows]."""
        return self._get("pnet_points_samples")

    def sources(self) -> numpy.ndarray:
        """The row of the positions given first that each row was, int32 [rows]."""
        return self._get("pnet_points_sources")

    def parents(self, coarse: Points) -> numpy.ndarray:
        """The row of a level, sampled from these points, that each row belongs to, int32 [rows]."""
        found = numpy.empty(self.rows, numpy.int32)
        _call("pnet_points_parents", [self, *_given(coarse=coarse)], byref(_out(found)))
        return found


class PointSet(VoxelSet):
    """Which rows of points a convolution of a model joins, by which kernel cell. It convolves as a VoxelSet does, and has no
    voxels.

    out, source  the same points, or a level and what it was sampled from, in either direction
    kernel       kernel cells an axis
    radius       metres; None: kernel / 2 cells of the finer level
    knn          so many nearest points instead of a radius
    shape        "ball" or "cube"
    degrade      "voxel", or some of "centre", "neighbour", "kernel"
    """

    def __init__(self, out: Points, source: Points | None = None, kernel: int = 3, *, radius: float | None = None,
                 knn: int | None = None, shape: str = "ball", degrade: str | list[str] = ()):
        names = [degrade] if isinstance(degrade, str) else library.elements("degrade", degrade)
        parts = 0
        for name in names:
            parts |= library.choice("degrade", library.DEGRADATIONS, name)
        options = library.pnet_near_options(
            kernel=library.count("kernel", kernel, 31, 1), radius=optional("radius", radius),
            knn=0 if knn is None else library.count("knn", knn, 31, 1), shape=library.choice("shape", library.SHAPES, shape),
            degrade=parts)
        made = c_void_p()
        both = _given(out=out, source=out if source is None else source)
        _call("pnet_set_points", both, byref(options), byref(made))
        self._begin(made)


class PointMap(_handle.Computing):
    """How rows of `out` are made of rows of `source`, without learned weights. It never changes, so threads may share it.

    kind     "mean", "max", "sum": out was sampled from source; "parent": source was sampled from out; "inverse_distance": the k
             nearest points of any; "trilinear", "nearest": source is a level
    k        of "inverse_distance"
    outside  of "trilinear" and "nearest", where there is no cell: "zero", or "nearest" for the nearest row
    """

    def __init__(self, out: Points, source: Points, kind: str = "mean", *, k: int = 3, outside: str = "zero"):
        options = library.pnet_map_options(
            kind=library.choice("kind", library.MAPS, kind), k=library.count("k", k, 31, 1),
            outside_nearest=library.choice("outside", {"zero": 0, "nearest": 1}, outside))
        made = c_void_p()
        _call("pnet_map_new", _given(out=out, source=source), byref(options), byref(made))
        super().__init__("map", made.value, "pnet_map_free")
        self._rows_out, self._rows_in, self._kind = out.rows, source.rows, kind

    def forward(self, features, argmax: bool = False):
        """float32 [rows of source, channels] to [rows of out, channels]; with argmax, of "max", also int32 of that shape: the row
        that each maximum came from."""
        x = _features("features", features, self._rows_in)
        result = numpy.empty((self._rows_out, x.shape[1]), numpy.float32)
        run = library.pnet_map_run()
        rows = None
        if argmax:
            if self._kind != "max":
                raise library.refuse(f'argmax: only a map of kind "max" has it, not "{self._kind}"')
            rows = numpy.empty(result.shape, numpy.int32)
            run.argmax = rows.ctypes.data_as(POINTER(c_int32))
        self._call("pnet_map_forward", byref(_arrays.describe(x)), byref(run), byref(_out(result)))
        return (result, rows) if argmax else result

    def backward(self, gradient, argmax=None) -> numpy.ndarray:
        """float32 [rows of out, channels] to [rows of source, channels]; "max" needs the forward's argmax."""
        g = _features("gradient", gradient, self._rows_out)
        result = numpy.empty((self._rows_in, g.shape[1]), numpy.float32)
        run = library.pnet_map_run()
        if argmax is not None:
            rows = numpy.ascontiguousarray(argmax)
            if rows.dtype != numpy.int32 or rows.shape != g.shape:
                raise library.refuse(f"argmax is {rows.dtype} {list(rows.shape)}, expected int32 {list(g.shape)}")
            run.argmax = rows.ctypes.data_as(POINTER(c_int32))
        self._call("pnet_map_backward", byref(_arrays.describe(g)), byref(run), byref(_out(result)))
        return result


def _attention(heads: int, scale: float | None) -> dict:
    """The options of the library for attention."""
    return {"heads": library.count("heads", heads, 31, 1), "scale": optional("scale", scale)}


def _scale(value) -> float:
    return 0 if value is None else library.number("scale", value)


class Buckets(_handle.Computing):
    """Points of each sample in an order, cut into buckets and scopes, for attention. They never change, so threads may share
    them.

    order   "z", "z_trans", "hilbert", "hilbert_trans", "xor_div", "xor_mod", "z_mod"
    cell    edge of the voxels of an order that is not "z", metres; None: the cells of the level
    bucket, scope, shift, stride, wrap   as the layer attend of a model has them
    """

    def __init__(self, points: Points, order: str = "z", *, bucket: int = 512, scope: int = 8, shift: int = 0, stride: int = 1,
                 wrap: bool = False, cell: float | None = None):
        options = library.pnet_buckets_options(
            order=library.choice("order", library.ORDERS, order), bucket=library.count("bucket", bucket, 31, 1),
            scope=library.count("scope", scope, 31, 1), shift=library.count("shift", shift, 31),
            stride=library.count("stride", stride, 31, 1), wrap=library.flag("wrap", wrap), cell=optional("cell", cell))
        made = c_void_p()
        _call("pnet_buckets_new", _given(points=points), byref(options), byref(made))
        super().__init__("set of buckets", made.value, "pnet_buckets_free")
        self._rows = points.rows

    def attend(self, qkv, heads: int = 1, scale: float | None = None) -> tuple[numpy.ndarray, numpy.ndarray]:
        """qkv float32 [rows, 3 C]: queries, keys, values; returns the result [rows, C], and log_sum [rows, heads] for the
        backward."""
        x, given = _features("qkv", qkv, self._rows), _attention(heads, scale)
        result = numpy.empty((self._rows, x.shape[1] // 3), numpy.float32)
        log_sum = numpy.empty((self._rows, given["heads"]), numpy.float32)
        options = library.pnet_attend_options(log_sum=_arrays.pointer(log_sum), **given)
        self._call("pnet_attend_forward", byref(_arrays.describe(x)), byref(options), byref(_out(result)))
        return result, log_sum

    def attend_backward(self, qkv, result, log_sum, gradient, scale: float | None = None) -> numpy.ndarray:
        """The gradient of qkv, [rows, 3 C], from that of the result; result and log_sum are those of attend."""
        x = _features("qkv", qkv, self._rows)
        out, g = _features("result", result, self._rows), _features("gradient", gradient, self._rows)
        sums = _features("log_sum", log_sum, self._rows)
        found = numpy.empty(x.shape, numpy.float32)
        options = library.pnet_attend_options(log_sum=_arrays.pointer(sums), **_attention(sums.shape[1], scale))
        given = (byref(_arrays.describe(a)) for a in (x, out, g))
        self._call("pnet_attend_backward", *given, byref(options), byref(_out(found)))
        return found


LOSS_FLAGS, LOSS_COUNTS = ("squares", "at_least_one", "sums"), ("rounds", "most", "entries")


def loss_number(name: str, value):
    """The number of an option of a loss, checked by its type alone; the library checks its range."""
    if name in LOSS_FLAGS:
        return library.flag(name, value)
    return library.count(name, value, 31) if name in LOSS_COUNTS else library.number(name, value)


def _loss_options(kind: str, options: dict) -> library.pnet_loss_options:
    """The options of the library: those of a model, but for what `options` says."""
    chosen = library.pnet_loss_options()
    library.call("pnet_loss_default", library.choice("kind", library.LOSSES, kind), byref(chosen))
    known = {name for name, _ in chosen._fields_} - {"size", "kind"}
    for name, value in options.items():
        member = "lambda" if name == "lambda_" else name
        if member not in known:
            raise library.refuse(f"a loss has no option {name!r}, expected one of {', '.join(sorted(known))}")
        setattr(chosen, member, loss_number(name, value))
    return chosen


def point_loss(kind: str, x: Points, y: Points, gradients: bool = False, **options):
    """A loss between two sets of points, x being predicted: "chamfer", "dcd", "hypercd", "infocd", "emd", "sinkhorn", "apml".

    options    members of struct pnet_loss_options, such as squares=False, tau=0.5 or lambda_=0.1; others are those of a model
    gradients  returns (loss, gradient by the positions of x, gradient by those of y), else the loss alone
    """
    chosen = _loss_options(kind, options)
    both, loss, need = _given(x=x, y=y), c_float(), library.pnet_loss_bytes()
    _call("pnet_loss_workspace", both, byref(chosen), byref(need))
    kept = numpy.empty(need.kept // 16 + 1, numpy.complex128)  # 16 bytes an element, as it must be aligned
    run = library.pnet_loss_run(kept=kept.ctypes.data, kept_bytes=need.kept)
    _call("pnet_loss_forward", both, byref(chosen), byref(run) if gradients else None, byref(loss))
    if not gradients:
        return loss.value
    found = [numpy.empty((points.rows, 3), numpy.float32) for points in (x, y)]
    _call("pnet_loss_backward", both, byref(chosen), byref(run), 1, *(byref(_out(f)) for f in found))
    return loss.value, *found
