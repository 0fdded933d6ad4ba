"""Points and their levels as tensors: sets between them, maps, attention, losses. The library makes the geometry, where the
positions lie."""

from __future__ import annotations

import functools
import itertools
import threading
import weakref
from ctypes import byref

import torch
from torch import Tensor

from pnet import _library as library
from pnet import points as arrays
from pnet.torch import _calls, _device, _geometry, _sets, _sums
from pnet.torch._calls import Triplets

_held: dict[int, object] = {}  # what tokens stand for
_numbers = itertools.count(1)
_lock = threading.Lock()


def hold(what: object) -> Tensor:
    """A token for an object of the library: a tensor with a number, by which operators find the object as long as the token's
    memory is used, by autograd or whoever. It means nothing in another process."""
    _sums.check_operands()  # a token of a transform or a recording would be none afterwards
    number = next(_numbers)
    token = torch.tensor([number], device="cpu")
    _held[number] = what
    weakref.finalize(token.untyped_storage(), _held.pop, number, None).atexit = False
    return token


def held(token: Tensor):
    """The object of a token."""
    found = _held.get(int(token))
    if found is None:
        raise library.refuse("the geometry of this token is not there: it was made in another process, or is a copy of one that "
                             "was forgotten")
    return found


class PointSet:
    """Which rows of points a convolution joins, by which kernel cell: made by Points.set()."""

    def __init__(self, triplets: Triplets):
        self._triplets = triplets

    @property
    def rows_in(self) -> int:
        return self._triplets.rows_in

    @property
    def rows_out(self) -> int:
        return self._triplets.rows_out

    @property
    def taps(self) -> int:
        return self._triplets.taps

    def conv(self, features: Tensor, weight: Tensor, bias: Tensor | None = None, groups: int = 1) -> Tensor:
        """As VoxelSet.conv. Points of one kernel cell are summed."""
        return _sums.conv(self._triplets, features, weight, bias, groups)

    def pool(self, features: Tensor, kind: str = "max") -> Tensor:
        """As VoxelSet.pool: over the neighbours."""
        return _sums.pool(self._triplets, features, kind)


class PointMap:
    """How rows of some points are made of rows of others, without learned weights: made by Points.map()."""

    def __init__(self, made: _geometry.Map, kind: str):
        self._token, self.kind, self._there = hold(made), kind, made.device.type == "cuda"
        self.rows_out, self.rows_in = made.made._rows_out, made.made._rows_in

    def __call__(self, features: Tensor) -> Tensor:
        """[rows_in, channels] to [rows_out, channels]."""
        _sums.check_operands(features=features)
        given = _kind_of("features", features, features.dtype, self._there)
        return torch.ops.pnet.map(given, self._token, self.rows_out, self.kind)[0].to(features.dtype)


class Buckets:
    """Points of each sample in an order, cut into buckets and scopes: made by Points.buckets()."""

    def __init__(self, made: _geometry.Scopes):
        self._token, self.rows, self._there = hold(made), made.made._rows, made.device.type == "cuda"

    def attend(self, qkv: Tensor, heads: int = 1, scale: float | None = None) -> Tensor:
        """pnet.torch.attend()."""
        _sums.check_operands(qkv=qkv)
        heads, factor = library.count("heads", heads, 31, 1), arrays.optional("scale", scale)
        kind = _sums.result_type(qkv)
        given = _kind_of("qkv", qkv, kind, self._there)
        return torch.ops.pnet.attend(given, self._token, heads, factor)[0].to(kind)


def _kind_of(name: str, given: Tensor, kind: torch.dtype, there: bool) -> Tensor:
    """Features as the library computes with them: on a GPU in the type of the result, on the CPU in float32."""
    if given.dtype is not torch.float32 and given.dtype not in _calls.NARROW:
        raise library.refuse(f"{name} is {given.dtype}: expected float32, bfloat16 or float16")
    return given.to(kind if there else torch.float32)


def _constant(value):
    """A number of a tensor or array, which may be written to, and a list likewise, as what cannot change."""
    if hasattr(value, "tolist") and not getattr(value, "requires_grad", False):  # number() refuses gradients
        value = value.tolist()
    return tuple(value) if isinstance(value, list) else value


def _once(make):
    """Of a method of Points: what it makes of itself, other points and numbers is made once, as long as all of them are there.
    torch.compile does not look into it."""
    @torch.compiler.disable
    @functools.wraps(make)
    def made(self, *given, **named):
        given = tuple(_constant(value) for value in given)
        named = {name: _constant(value) for name, value in named.items()}
        other = given[0] if given and isinstance(given[0], Points) else self
        # with types: 3.0 and True equal integers, and are none
        rule = (make.__name__, bool(given) and other is given[0], tuple((type(g), g) for g in given if g is not other),
                tuple((name, type(named[name]), named[name]) for name in sorted(named)))
        try:
            hash(rule)
        except TypeError:
            return make(self, *given, **named)  # which refuses what is no number, by its name
        with self._making:
            known = self._made.setdefault(other, {})
            if rule not in known:
                with _sets.apart():
                    known[rule] = make(self, *given, **named)
            return known[rule]
    return made


class Points:
    """Points of a batch, or a level that was sampled from them. Rows of features belong to its rows.

    positions   float32 [rows, 3], metres, rows in any order; of a level those of the points that it kept, with their gradients
    row_splits  int32 or int64 [samples + 1]: where samples begin, and the end; or
    sample      int32 or int64 [rows]: the sample of each row, of `batches`; None: there is one
    cell        metres: the finest cells that will be sampled, along which points lie inside; None: along cells of their own

    All of these, and all features, lie on one device. Levels, sets, maps and buckets are made once and kept with the points,
    until drop_sets(); on a GPU making one waits for the stream that was the current one when the points were made. They are those
    of the positions at that time: `positions` raises ValueError once the tensor was written to. Raises pnet.Error, which names
    the row of a coordinate that is not finite, or of a wrong sample.
    """

    def __init__(self, positions: Tensor, *, row_splits: Tensor | None = None, sample: Tensor | None = None,
                 batches: int | None = None, cell: float | None = None):
        if not isinstance(positions, Tensor):
            raise library.refuse(f"positions: expected a tensor, not {type(positions).__name__}")
        home = _device.home(positions.device)
        made = _geometry.points(positions, row_splits, sample, batches, cell)
        self._begin(positions, _sets.version_of(positions), None, made, home)

    def _begin(self, given: Tensor, version: int | None, rows: Tensor | None, points: arrays.Points,
               home: torch.cuda.Stream | None) -> None:
        self._given, self._version = given, version  # the positions given first
        self._rows = rows  # of a level: which of their rows
        self._points, self._home = points, home  # the stream of all that is made of them
        self._levels: dict[float, Points] = {}
        self._made: weakref.WeakKeyDictionary[Points, dict] = weakref.WeakKeyDictionary()
        self._making = threading.RLock()

    def __reduce__(self):
        raise TypeError("points are not copied or pickled: make them again of their positions")

    @property
    def positions(self) -> Tensor:
        """float32 [rows, 3], metres. Those of a level are gathered anew each time, with the gradients of the positions given."""
        if self._version not in (None, _sets.version_of(self._given)) and not torch.compiler.is_compiling():
            raise ValueError("positions were written to in place after points were made of them: make points of them again")
        return self._given if self._rows is None else self._given[self._rows]

    def drop_sets(self) -> None:
        """Forgets levels, sets, maps and buckets; those that the program holds stay as they are."""
        with self._making:
            self._levels.clear()
            self._made.clear()

    @property
    def rows(self) -> int:
        return self._points.rows

    @property
    def batches(self) -> int:
        """Samples."""
        return self._points.batches

    @property
    def cell(self) -> float:
        """The edge of a level's cells, metres; 0: these are no level."""
        return self._points.cell

    @property
    def device(self) -> torch.device:
        return self._given.device

    def _get(self, name: str, of: arrays.Points, *others: arrays.Points, width: int = 0) -> Tensor:
        """What a function fills: float32 [rows, width], or int32 [rows]."""
        shape, dtype = ((of.rows, width), torch.float32) if width else (of.rows, torch.int32)
        found = torch.empty(shape, dtype=dtype, device=self.device)
        with _device.on_home(self._home), _device.own_errors():
            arrays._call(name, [of, *others], byref(_geometry.filled(found)))
        return found

    def samples(self) -> Tensor:
        """The sample of each row, int32 [rows]."""
        return self._get("pnet_points_samples", self._points)

    def sources(self) -> Tensor:
        """The row of the positions given first that each row was, int32 [rows]."""
        return self._get("pnet_points_sources", self._points)

    def parents(self, coarse: Points) -> Tensor:
        """The row of a level, sampled from these points, that each row belongs to, int32 [rows]."""
        return self._get("pnet_points_parents", self._points, library.instance("coarse", coarse, Points)._points)

    @torch.compiler.disable
    def grid(self, cell: float) -> Points:
        """The level with these cells, metres: each cell with points keeps the one nearest to its centre. The cells of a level of
        a level are a whole multiple of its own: p.grid(v), p.grid(v).grid(2 * v) are grid(p, v * [1, 2]) of a model."""
        cell = library.number("cell", cell, zero=False)
        with self._making:
            if cell not in self._levels:
                with _device.own_errors():
                    made = self._points.grid(cell)
                if made.rows == self.rows and made.cell == self.cell:
                    return self  # its own cells
                level = Points.__new__(Points)
                with _sets.apart():
                    rows = self._get("pnet_points_sources", made).long()
                level._begin(self._given, self._version, rows, made, self._home)
                self._levels[cell] = level
            return self._levels[cell]

    @_once
    def set(self, source: Points | None = None, kernel: int = 3, *, radius: float | None = None, knn: int | None = None,
            shape: str = "ball", degrade: str | tuple[str, ...] = ()) -> PointSet:
        """The set of a convolution to these points from `source`: the same points (None), or a level and what it was sampled
        from, in either direction.

        kernel       kernel cells an axis
        radius       metres; None: kernel / 2 cells of the finer level
        knn          so many nearest points instead of a radius
        shape        "ball" or "cube"
        degrade      "voxel", or some of "centre", "neighbour", "kernel"
        """
        given = self if source is None else library.instance("source", source, Points)
        with _device.own_errors():
            made = arrays.PointSet(self._points, given._points, kernel, radius=radius, knn=knn, shape=shape, degrade=degrade)
        with _device.on_home(self._home):
            blocks = _calls.pack(made._use(), self.device)
        found = Triplets(*blocks, made.rows_out, made.rows_in, made.taps)
        if self._home is None:
            return PointSet(found.adopt(made))
        return PointSet(found.made())  # the blocks have all that its sums read there

    @_once
    def map(self, source: Points, kind: str, *, k: int = 3, outside: str = "zero") -> PointMap:
        """How rows of these points are made of rows of `source`: the functions pool, upsample and interpolate."""
        library.instance("source", source, Points)
        with _device.own_errors():
            made = arrays.PointMap(self._points, source._points, kind, k=k, outside=outside)
        return PointMap(_geometry.Map(made, self.device, self._home), kind)

    @_once
    def buckets(self, order: str = "z", *, bucket: int = 512, scope: int = 8, shift: int = 0, stride: int = 1, wrap: bool = False,
                cell: float | None = None) -> Buckets:
        """Buckets of each sample's points along an order, for attend(): the options of the layer attend of a model."""
        with _device.own_errors():
            made = arrays.Buckets(self._points, order, bucket=bucket, scope=scope, shift=shift, stride=stride, wrap=wrap,
                                  cell=cell)
        return Buckets(_geometry.Scopes(made, self.device, self._home))


def _check_points(**given: Points) -> None:
    for name, one in given.items():
        library.instance(name, one, Points)


def pool(features: Tensor, points: Points, level: Points, kind: str = "mean") -> Tensor:
    """Over the points of each cell of a level that was sampled from `points`: "mean", "max" or "sum"."""
    _check_points(points=points, level=level)
    return level.map(points, _one_of(kind, ("mean", "max", "sum")))(features)


def upsample(features: Tensor, level: Points, points: Points) -> Tensor:
    """The row of the cell of `level` that each of `points` belongs to, from which it was sampled."""
    _check_points(level=level, points=points)
    return points.map(level, "parent")(features)


def interpolate(features: Tensor, source: Points, points: Points, kind: str = "inverse_distance", *, k: int = 3,
                outside: str = "zero") -> Tensor:
    """Features of `source` at any points: "inverse_distance" of the k nearest rows in the sample, or, of a level whose features
    lie on the centres of its cells, "trilinear" or "nearest"; there `outside` says what is where no cell is, "zero" or
    "nearest"."""
    _check_points(source=source, points=points)
    kind = _one_of(kind, ("inverse_distance", "trilinear", "nearest"))
    k = library.count("k", k, 31, 1)
    more = {"k": k} if kind == "inverse_distance" else {"outside": outside}
    return points.map(source, kind, **more)(features)


def attend(qkv: Tensor, points: Points, heads: int = 1, scale: float | None = None, *, order: str = "z", bucket: int = 512,
           scope: int = 8, shift: int = 0, stride: int = 1, wrap: bool = False, cell: float | None = None) -> Tensor:
    """Attention of points in scopes of buckets along an order. qkv [rows, 3 C]: queries, keys, values side by side, each by heads
    of 8, 16, 32, 64 or 128 channels; returns [rows, C]. scale: factor of the products, None: 1 / sqrt(C / heads)."""
    _check_points(points=points)
    made = points.buckets(order, bucket=bucket, scope=scope, shift=shift, stride=stride, wrap=wrap, cell=cell)
    return made.attend(qkv, heads, scale)


def _one_of(kind: str, known: tuple[str, ...]) -> str:
    if kind not in known:
        raise library.refuse(f"kind is {kind!r}, expected one of {', '.join(known)}")
    return kind


def point_loss(kind: str, x: Tensor, y: Tensor, *, x_splits: Tensor | None = None, y_splits: Tensor | None = None,
               **options) -> Tensor:
    """A loss between two sets of points, x being predicted, float32 [rows, 3] each: "chamfer", "dcd", "hypercd", "infocd", "emd",
    "sinkhorn", "apml", as the losses of a model; the mean over the samples. It has gradients of x and of y.

    x_splits, y_splits   where samples begin, and the end; None: there is one
    options              members of struct pnet_loss_options, such as squares=False, tau=0.5 or lambda_=0.1
    """
    library.choice("kind", library.LOSSES, kind)
    _sums.check_operands(x=x, y=y, x_splits=x_splits, y_splits=y_splits)
    names = sorted(options)
    values = [float(arrays.loss_number(name, options[name])) for name in names]
    wanted = torch.is_grad_enabled() and (x.requires_grad or y.requires_grad)
    given = [_kind_of(name, t, torch.float32, True) for name, t in (("x", x), ("y", y))]
    return torch.ops.pnet.point_loss(*given, x_splits, y_splits, kind, " ".join(names), values, wanted)[0]
