#!/usr/bin/env python3
"""What the order of rows costs: one layer of each kind from PyTorch, with rows along a curve, sorted, and at random.

    python3 bench/rows.py [--device cpu|cuda] [--precision fp32|fp16|bf16] [--channels 64] [--voxels 100000] [--points FILE ..]
                          [--cell 0.05] [--kinds submanifold,strided,inverse,transposed,ball,pool,interpolate] [--repeat 11] [--json]

Voxels are those of rooms that the script makes, or of the --points files, one a sample, in cells of --cell (bench/spconv.py has both);
points are one for each voxel, somewhere inside of it. Rows of inputs are along a Morton curve, sorted by sample and index, and at
random; the table has medians of --repeat runs in milliseconds, on a GPU between CUDA events: of making the set or map, of the forward
sum, and of both gradients. `ratio` is random / curve, `off` how many rows of the results and gradients have other bits than with rows
along the curve.

    submanifold, strided (kernel 2, stride 2), inverse (of strided), transposed (kernel 2, stride 2)   convolutions of voxels
    ball          a convolution of points in a radius of 1.5 cells, kernel 3
    pool          the largest of the points in cells of two, over the strided set
    interpolate   from points of cells of two cells to all points, by distance

PYTHONPATH is the folder with the package pnet; LD_LIBRARY_PATH the one with libpnet.so.0, unless it lies in the package.
"""
import argparse
import json
import pathlib
import statistics
import sys
import time

try:
    import torch
except ImportError as error:
    sys.exit(f"rows.py: PyTorch is not there: {error}")
import pnet.torch
sys.path.append(str(pathlib.Path(__file__).resolve().parent))
spconv = __import__("spconv")  # its rooms, its reader and its curve

PRECISIONS = {"bf16": torch.bfloat16, "fp16": torch.float16, "fp32": torch.float32}
KINDS = ("submanifold", "strided", "inverse", "transposed", "ball", "pool", "interpolate")
ORDERS = ("curve", "sorted", "random")


def order_of(name, indices):
    if name == "curve":
        return spconv.morton(indices).argsort()
    if name == "sorted":
        return torch.arange(len(indices))
    return torch.randperm(len(indices), generator=torch.Generator().manual_seed(2))


class Case:
    """One kind of layer. `indices`, `points`: in the order of the rows."""

    def __init__(self, o, kind, indices, points, extent, samples):
        self.kind, self.indices, self.points, self.extent, self.samples = kind, indices, points, extent, samples
        self.radius, self.cell = 1.5 * o.cell, o.cell
        c = o.channels
        taps = {"submanifold": 27, "ball": 27}.get(kind, 8)
        random = torch.Generator().manual_seed(3)
        self.weight = None
        if kind not in ("pool", "interpolate"):
            weight = torch.randn(taps, c, c, generator=random) / (taps * c) ** 0.5
            self.weight = weight.to(PRECISIONS[o.precision]).to(o.device).requires_grad_()

    def make(self):
        if self.kind in ("ball", "interpolate"):
            made = pnet.torch.Points(self.points, sample=self.indices[:, 0], batches=self.samples)
            if self.kind == "ball":
                return made.set(kernel=3, radius=self.radius)
            level = made.grid(2 * self.cell)
            self.level_rows = level.rows
            return made.map(level, "inverse_distance")
        if self.kind == "submanifold":
            return pnet.torch.voxel_set(self.indices, self.extent, 3, batches=self.samples)
        kind = "transposed" if self.kind == "transposed" else "strided"
        made = pnet.torch.voxel_set(self.indices, self.extent, 2, kind=kind, stride=2, batches=self.samples)
        return made.inverse() if self.kind == "inverse" else made

    def run(self, made, features):
        if self.kind == "pool":
            return made.pool(features, "max")
        if self.kind == "interpolate":
            return made(features)
        return made.conv(features, self.weight)


def milliseconds(run, o):
    """The median, and what the last run returned."""
    times, result = [], None
    for turn in range(-2, o.repeat):
        result = None
        if o.device == "cuda":
            begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            torch.cuda.synchronize()
            begin.record()
            result = run()
            end.record()
            end.synchronize()
            took = begin.elapsed_time(end)
        else:
            first = time.perf_counter()
            result = run()
            took = (time.perf_counter() - first) * 1e3
        if turn >= 0:
            times.append(took)
    return statistics.median(times), result


def values(rows, channels, seed, o):
    return torch.randn(rows, channels, generator=torch.Generator().manual_seed(seed)).to(PRECISIONS[o.precision]).to(o.device)


def run_kind(o, kind, indices, points, extent, samples):
    """A row of numbers for each order of rows."""
    rows, first = [], None
    for name in ORDERS:
        order = order_of(name, indices)
        case = Case(o, kind, indices[order].contiguous().to(o.device), points[order].contiguous().to(o.device), extent, samples)
        row = {"kind": kind, "order": name}
        row["make"], made = milliseconds(case.make, o)
        # the side of the voxels has the caller's order: of inputs, for inverse that of outputs, and for submanifold and ball both
        own_in, own_out = kind not in ("inverse", "interpolate"), kind in ("submanifold", "ball", "inverse", "interpolate")
        count_in, count_out = (made.rows_in, made.rows_out) if kind != "interpolate" else (case.level_rows, len(indices))
        features, gradient = values(count_in, o.channels, 4, o), values(count_out, o.channels, 5, o)
        place = order.to(o.device)
        features = (features[place] if own_in else features).requires_grad_()
        gradient = gradient[place] if own_out else gradient
        row["forward"], _ = milliseconds(lambda: case.run(made, features), o)
        result = case.run(made, features)
        inputs = [features] + ([case.weight] if case.weight is not None else [])
        row["backward"], found = milliseconds(lambda: torch.autograd.grad(result, inputs, gradient, retain_graph=True), o)
        back = torch.empty_like(place)
        back[place] = torch.arange(len(place), device=place.device)
        compared = [result.detach()[back] if own_out else result.detach(), found[0][back] if own_in else found[0], *found[1:]]
        if first is None:
            first = compared
        row["off"] = sum(int((a != b).reshape(len(a), -1).any(1).sum()) for a, b in zip(compared, first))
        rows.append(row)
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--precision", choices=list(PRECISIONS))
    parser.add_argument("--channels", type=int, default=64)
    parser.add_argument("--voxels", type=int, default=100000)
    parser.add_argument("--samples", type=int, default=1)
    parser.add_argument("--points", nargs="*", default=[])
    parser.add_argument("--cell", type=float, default=0.05)
    parser.add_argument("--kinds", default=",".join(KINDS))
    parser.add_argument("--repeat", type=int, default=11)
    parser.add_argument("--json", action="store_true")
    o = parser.parse_args()
    o.precision = o.precision or ("fp16" if o.device == "cuda" else "fp32")
    if o.device == "cuda" and not torch.cuda.is_available():
        sys.exit("rows.py: PyTorch finds no GPU")
    if o.device == "cpu" and o.precision != "fp32":
        sys.exit("rows.py: the CPU computes in fp32")
    for kind in o.kinds.split(","):
        if kind not in KINDS:
            sys.exit(f"rows.py: there is no kind {kind!r}: expected some of {','.join(KINDS)}")
    parts = ([spconv.read(path, o.cell) for path in o.points] if o.points else
             [torch.unique(spconv.room(o.voxels, n + 1), dim=0) for n in range(o.samples)])
    indices = torch.cat([torch.cat([torch.full((len(p), 1), n), p], 1) for n, p in enumerate(parts)]).int()
    inside = torch.rand(len(indices), 3, generator=torch.Generator().manual_seed(6))
    points = (indices[:, 1:] + 0.1 + 0.8 * inside) * o.cell
    extent = [(int(n) + 2) // 2 * 2 for n in indices[:, 1:].amax(0)]
    rows = []
    for kind in o.kinds.split(","):
        rows += run_kind(o, kind, indices, points, extent, len(parts))
    result = {"device": torch.cuda.get_device_name() if o.device == "cuda" else "cpu", "precision": o.precision,
              "voxels": len(indices), "channels": o.channels, "torch": torch.__version__, "rows": rows}
    if o.json:
        print(json.dumps(result))
        return
    print(f"{len(indices)} rows, {o.channels} channels, {o.precision}, {result['device']}, PyTorch {torch.__version__}")
    print(f"{'kind':12} {'order':8}{'make ms':>10}{'forward':>10}{'backward':>10}{'off':>8}")
    for n, row in enumerate(rows):
        line = f"{row['kind']:12} {row['order']:8}" + "".join(f"{row[name]:10.3f}" for name in ("make", "forward", "backward"))
        print(line + f"{row['off']:8}")
        if row["order"] == "random":
            curve = rows[n - 2]
            print(f"{'':12} {'ratio':8}" + "".join(f"{row[name] / curve[name]:10.2f}" for name in ("make", "forward", "backward")))


if __name__ == "__main__":
    main()
