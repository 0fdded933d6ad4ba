#!/usr/bin/env python3
"""Training steps of sparse convolution networks in PyTorch: pnet.torch.spconv, plain PyTorch, spconv where it is installed.

    python3 bench/spconv.py [--net minkunet18a|spunet] [--device cpu|cuda] [--precision bf16|fp16|fp32] [--voxels 100000]
                            [--samples 1] [--points FILE ..] [--cell 0.05] [--narrow 1]
                            [--backends pnet,plain,empty,spconv] [--rows random,curve] [--repeat 20] [--json]

minkunet18a has the layers of models/minkunet18a.pnet, spunet those of Pointcept's SpUNet; --samples is 3 there unless it is given.
A step is forward, cross entropy, backward, and a step of SGD, with autocast in --precision. Samples are rooms that the script makes
(floor, ceiling, walls, boxes), --voxels each, or voxels of the --points files, one a sample: .npy or .ply with positions in metres,
in cells of --cell, or .npy with whole numbers. Their rows are at random, as programs have them, and, timed beside that, along a Morton
curve.

    plain     each kernel cell by gather, matmul and index_add, from pairs that sorted keys of voxels give
    empty     convolutions give zeros: what the rest of the network takes
    step      with the maps of all levels, sets or pairs, made inside
    known     with maps that are there
    graph     the same, replayed as a CUDA graph

ms are medians of --repeat, on a GPU of the time between CUDA events; MiB is the peak that PyTorch's allocator had in a step, without
what other backends keep. `off` is the relative difference in the 2-norm of all gradients from those of `plain`, in float32, before any
step, with the weights of `plain`.

PYTHONPATH is the folder with the package pnet; LD_LIBRARY_PATH the one with libpnet.so.0, unless it lies in the package.
"""
import argparse
import importlib
import json
import math
import pathlib
import statistics
import sys
import time

# this file has the name of the library that it looks for
sys.path[:] = [place for place in sys.path if pathlib.Path(place or ".").resolve() != pathlib.Path(__file__).resolve().parent]

try:
    import torch
    from torch import nn
except ImportError as error:
    sys.exit(f"spconv.py: PyTorch is not there: {error}")

PRECISIONS = {"bf16": torch.bfloat16, "fp16": torch.float16, "fp32": torch.float32}
CLASSES, CHANNELS = 13, 6


# ---- plain PyTorch, with the names of spconv

class PlainTensor:
    def __init__(self, features, indices, spatial_shape, batch_size, maps=None):
        self.features, self.indices, self.spatial_shape, self.batch_size = features, indices, list(spatial_shape), batch_size
        self.maps = {} if maps is None else maps

    def replace_feature(self, features):
        return PlainTensor(features, self.indices, self.spatial_shape, self.batch_size, self.maps)


def keys_of(indices, shape):
    """One number a voxel, with a margin so that neighbours outside of the shape have numbers of their own."""
    key = indices[:, 0].long()
    for axis, extent in enumerate(shape):
        key = key * (extent + 64) + indices[:, axis + 1] + 32
    return key


def offsets_of(kernel, device):
    steps = torch.arange(kernel, device=device)
    return torch.cartesian_prod(steps, steps, steps).int()


def submanifold_pairs(x, kernel):
    """For each tap rows of outputs and of inputs."""
    ordered, order = keys_of(x.indices, x.spatial_shape).sort()
    pairs = []
    for step in offsets_of(kernel, x.indices.device) - kernel // 2:
        moved = x.indices.clone()
        moved[:, 1:] += step
        key = keys_of(moved, x.spatial_shape)
        place = torch.searchsorted(ordered, key).clamp(max=len(ordered) - 1)
        there = (ordered[place] == key).nonzero()[:, 0]
        pairs.append((there, order[place[there]]))
    return pairs


def strided_pairs(x, kernel):
    """The same of a kernel that is as large as its stride, with the voxels of the outputs."""
    coarse = x.indices.clone()
    coarse[:, 1:] //= kernel
    outputs, row = torch.unique(coarse, dim=0, return_inverse=True)
    rest = (x.indices[:, 1:] % kernel).long()
    tap = (rest[:, 0] * kernel + rest[:, 1]) * kernel + rest[:, 2]
    order = tap.argsort(stable=True)
    pairs = [(row[rows], rows) for rows in order.split(torch.bincount(tap, minlength=kernel ** 3).tolist())]
    return outputs, pairs


class PlainConv(nn.Module):
    def __init__(self, cin, cout, kernel_size, how, key):
        super().__init__()
        self.kernel, self.how, self.key = kernel_size, how, key
        self.weight = nn.Parameter(torch.empty(cout, *[kernel_size] * 3, cin))
        bound = 1 / math.sqrt(kernel_size ** 3 * cin)
        nn.init.uniform_(self.weight, -bound, bound)

    def forward(self, x):
        if self.how == "inverse":
            source, _, pairs = x.maps[self.key]
            pairs, result = [(j, i) for i, j in pairs], PlainTensor(None, source.indices, source.spatial_shape, x.batch_size, x.maps)
        else:
            if self.key not in x.maps:
                # without its features, or the maps would keep the step alive that made them
                source = PlainTensor(None, x.indices, x.spatial_shape, x.batch_size)
                if self.how == "submanifold":
                    x.maps[self.key] = source, x.indices, submanifold_pairs(x, self.kernel)
                else:
                    x.maps[self.key] = source, *strided_pairs(x, self.kernel)
            _, indices, pairs = x.maps[self.key]
            shape = x.spatial_shape if self.how == "submanifold" else [n // self.kernel for n in x.spatial_shape]
            result = PlainTensor(None, indices, shape, x.batch_size, x.maps)
        device = x.features.device.type
        kind = torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else torch.float32
        result.features = self.sums(x.features, pairs, len(result.indices), kind)
        return result

    def sums(self, features, pairs, rows, kind):
        weight = self.weight.reshape(self.weight.shape[0], -1, self.weight.shape[-1]).permute(1, 2, 0)
        total = torch.zeros(rows, weight.shape[2], device=features.device)
        for matrix, (i, j) in zip(weight, pairs):
            if len(i):
                total = total.index_add(0, i, (features[j] @ matrix).float())
        return total.to(kind)


class Zeros(torch.autograd.Function):
    @staticmethod
    def forward(ctx, features, weight, rows, kind):
        ctx.like = features.new_empty(()), features.shape, weight
        return features.new_zeros((rows, weight.shape[0]), dtype=kind)

    @staticmethod
    def backward(ctx, gradient):
        like, shape, weight = ctx.like
        return like.new_zeros(shape), torch.zeros_like(weight), None, None


class EmptyConv(PlainConv):
    def sums(self, features, pairs, rows, kind):
        return Zeros.apply(features, self.weight, rows, kind)


class Plain:
    """The names of spconv that the networks use."""

    SparseConvTensor, SparseModule = PlainTensor, nn.Module

    def __init__(self, conv):
        self.conv = conv

    def SubMConv3d(self, cin, cout, kernel_size, bias, indice_key):
        return self.conv(cin, cout, kernel_size, "submanifold", indice_key)

    def SparseConv3d(self, cin, cout, kernel_size, stride, bias, indice_key):
        return self.conv(cin, cout, kernel_size, "strided", indice_key)

    def SparseInverseConv3d(self, cin, cout, kernel_size, bias, indice_key):
        return self.conv(cin, cout, kernel_size, "inverse", indice_key)


PLAIN, EMPTY = Plain(PlainConv), Plain(EmptyConv)


# ---- networks

def on_features(x, *modules):
    features = x.features
    for module in modules:
        features = module(features)
    return x.replace_feature(features)


def block_of(sp, cin, cout, key):
    """Two convolutions with norms, around which the input is added."""
    class Block(sp.SparseModule):
        def __init__(self):
            super().__init__()
            self.first = sp.SubMConv3d(cin, cout, kernel_size=3, bias=False, indice_key=key)
            self.second = sp.SubMConv3d(cout, cout, kernel_size=3, bias=False, indice_key=key)
            self.norms = nn.ModuleList(nn.BatchNorm1d(cout) for _ in range(2))
            self.short = nn.Identity() if cin == cout else nn.Sequential(nn.Linear(cin, cout, bias=False), nn.BatchNorm1d(cout))

        def forward(self, x):
            y = on_features(self.first(x), self.norms[0], torch.relu)
            y = on_features(self.second(y), self.norms[1])
            return y.replace_feature(torch.relu(y.features + self.short(x.features)))

    return Block()


def unet(sp, stem, downs, encoders, decoders, blocks):
    """A U-net: channels of the stem, of the convolutions down, of the blocks behind them, and of the way up; blocks of each."""
    levels = len(downs)

    class Net(sp.SparseModule):
        def __init__(self):
            super().__init__()
            self.stem = sp.SubMConv3d(CHANNELS, stem, kernel_size=5, bias=False, indice_key="stem")
            self.stem_norm = nn.BatchNorm1d(stem)
            self.down, self.down_norm, self.up, self.up_norm = (nn.ModuleList() for _ in range(4))
            self.encode, self.decode = nn.ModuleList(), nn.ModuleList()
            widths = [stem]
            for level in range(levels):
                self.down.append(sp.SparseConv3d(widths[-1], downs[level], kernel_size=2, stride=2, bias=False,
                                                 indice_key=f"down{level}"))
                self.down_norm.append(nn.BatchNorm1d(downs[level]))
                self.encode.append(self.row(downs[level], encoders[level], blocks[level], f"level{level + 1}"))
                widths.append(encoders[level])
            width = widths.pop()
            for n, level in enumerate(reversed(range(levels))):
                self.up.append(sp.SparseInverseConv3d(width, decoders[n], kernel_size=2, bias=False, indice_key=f"down{level}"))
                self.up_norm.append(nn.BatchNorm1d(decoders[n]))
                self.decode.append(self.row(decoders[n] + widths.pop(), decoders[n], blocks[levels + n], f"level{level}"))
                width = decoders[n]
            self.head = nn.Linear(width, CLASSES)

        @staticmethod
        def row(cin, cout, count, key):
            return nn.ModuleList(block_of(sp, cin if n == 0 else cout, cout, key) for n in range(count))

        def forward(self, x):
            x = on_features(self.stem(x), self.stem_norm, torch.relu)
            skips = [x]
            for down, norm, blocks in zip(self.down, self.down_norm, self.encode):
                x = on_features(down(x), norm, torch.relu)
                for block in blocks:
                    x = block(x)
                skips.append(x)
            skips.pop()
            for up, norm, blocks in zip(self.up, self.up_norm, self.decode):
                x = on_features(up(x), norm, torch.relu)
                x = x.replace_feature(torch.cat([x.features, skips.pop().features], 1))
                for block in blocks:
                    x = block(x)
            return self.head(x.features)

    return Net()


def network(name, sp, narrow):
    def of(*channels):
        return [max(c // narrow, 1) for c in channels]
    if name == "minkunet18a":
        return unet(sp, *of(32), of(32, 32, 64, 128), of(32, 64, 128, 256), of(128, 128, 96, 96), [2] * 8)
    return unet(sp, *of(32), of(32, 64, 128, 256), of(32, 64, 128, 256), of(256, 128, 96, 96), [2, 3, 4, 6, 2, 2, 2, 2])


# ---- voxels

def box(low, high):
    """The surface of a box, whole numbers [n, 3]."""
    sides = [torch.arange(a, b) for a, b in zip(low, high)]
    faces = []
    for axis in range(3):
        for at in (sides[axis][:1], sides[axis][-1:]):
            faces.append(torch.cartesian_prod(*(at if a == axis else sides[a] for a in range(3))))
    return torch.cat(faces)


def room(voxels, seed):
    """So many voxels of a room, z, y, x: floor, ceiling, walls, and boxes on the floor."""
    random = torch.Generator().manual_seed(seed)
    scale = 1.0
    while True:
        side = [int(n * math.sqrt(voxels) * scale) + 4 for n in (0.12, 0.33, 0.27)]
        parts = [box([0, 0, 0], side)]
        for _ in range(12):
            size = [int(s * (0.15 + 0.35 * torch.rand(1, generator=random))) + 2 for s in side]
            low = [0] + [int((s - n) * torch.rand(1, generator=random)) for s, n in zip(side[1:], size[1:])]
            parts.append(box(low, [a + n for a, n in zip(low, size)]))
        found = torch.unique(torch.cat(parts), dim=0)
        if len(found) >= voxels:
            return found[torch.randperm(len(found), generator=random)[:voxels]]
        scale *= 1.05


def read_ply(path):
    """Positions [n, 3] of a .ply, binary little-endian or text, whose vertices come first and have no lists."""
    import numpy
    kinds = {"char": "i1", "uchar": "u1", "int8": "i1", "uint8": "u1", "short": "<i2", "ushort": "<u2", "int16": "<i2",
             "uint16": "<u2", "int": "<i4", "uint": "<u4", "int32": "<i4", "uint32": "<u4", "float": "<f4", "float32": "<f4",
             "double": "<f8", "float64": "<f8"}
    with open(path, "rb") as file:
        members, count, form, element = [], 0, None, None
        for line in iter(file.readline, b"end_header\n"):
            words = line.decode().split()
            if not line:
                sys.exit(f"spconv.py: {path} has no end of its header")
            if words[:1] == ["format"]:
                form = words[1]
            elif words[:1] == ["element"]:
                element = words[1]
                count = int(words[2]) if element == "vertex" else count
            elif words[:1] == ["property"] and element == "vertex":
                members.append((words[2], kinds[words[1]]))
        kind = numpy.dtype(members)
        if form == "ascii":
            rows = numpy.loadtxt(file, max_rows=count, ndmin=2)
            columns = [name for name, _ in members]
            return torch.from_numpy(rows[:, [columns.index(axis) for axis in "xyz"]])
        if form != "binary_little_endian":
            sys.exit(f"spconv.py: {path} has the format {form}")
        rows = numpy.frombuffer(file.read(count * kind.itemsize), kind, count)
        return torch.stack([torch.from_numpy(rows[axis].astype("f8")) for axis in "xyz"], 1)


def read(path, cell):
    """Voxels of a file, whole numbers from 0 on."""
    import numpy
    if path.endswith(".npy"):
        given = torch.from_numpy(numpy.load(path))
    elif path.endswith(".ply"):
        given = read_ply(path)
    else:
        sys.exit(f"spconv.py: {path} is neither .npy nor .ply")
    if given.dim() != 2 or given.shape[1] != 3:
        sys.exit(f"spconv.py: {path} has the shape {list(given.shape)}, expected [n, 3]")
    if given.is_floating_point():
        given = torch.floor(given.double() / cell)
    return torch.unique((given - given.amin(0)).long(), dim=0)


def morton(indices):
    """Numbers along a Morton curve, samples behind each other."""
    key = indices[:, 0].long() << 60
    for bit in range(20):
        for axis in range(indices.shape[1] - 1):
            key |= (indices[:, 1 + axis].long() >> bit & 1) << (3 * bit + 2 - axis)
    return key


def batch(o, rows):
    parts = [read(path, o.cell) for path in o.points] if o.points else [room(o.voxels, n + 1) for n in range(o.samples)]
    indices = torch.cat([torch.cat([torch.full((len(p), 1), n), p], 1) for n, p in enumerate(parts)]).int()
    top = int(indices[:, 1:].max()) + 1
    extent = [(top + 15) // 16 * 16] * 3  # halved four times
    random = torch.Generator().manual_seed(1)
    features = torch.randn(len(indices), CHANNELS, generator=random)
    labels = torch.randint(0, CLASSES, (len(indices),), generator=random)
    order = morton(indices).argsort()
    if rows == "random":
        order = order[torch.randperm(len(order), generator=random)]
    features, indices, labels = features[order], indices[order].contiguous(), labels[order]
    return *(t.to(o.device) for t in (features, indices, labels)), extent, len(parts)


# ---- measuring

class Case:
    def __init__(self, o, sp, given):
        self.o, self.sp = o, sp
        self.features, self.indices, self.labels, self.extent, self.samples = given
        torch.manual_seed(1)
        self.net = network(o.net, sp, o.narrow).to(o.device)
        self.known = {}  # what layers leave in a sparse tensor for others

    def start(self):
        self.optimizer = torch.optim.SGD(self.net.parameters(), lr=1e-3, momentum=0.9)

    def tensor(self, fresh):
        """The voxels, with their maps unless these are to be made."""
        indices = self.indices.clone() if fresh else self.indices
        x = self.sp.SparseConvTensor(self.features, indices, self.extent, self.samples)
        if not fresh:
            for name, value in self.known.items():
                setattr(x, name, dict(value))
        return x

    def gradients(self, x, kind):
        for parameter in self.net.parameters():
            parameter.grad = None
        with torch.autocast(self.o.device, kind, enabled=kind != torch.float32):
            scores = self.net(x)
        loss = nn.functional.cross_entropy(scores.float(), self.labels)
        loss.backward()
        return loss

    def step(self, fresh):
        loss = self.gradients(self.tensor(fresh), PRECISIONS[self.o.precision])
        self.optimizer.step()
        return loss.detach()

    def remember(self):
        """Runs once and keeps the maps."""
        name, whole, hooks = "maps" if isinstance(self.sp, Plain) else "indice_dict", {}, []
        for module in self.net.modules():
            if hasattr(module, "kernel") or hasattr(module, "kernel_size"):
                hooks.append(module.register_forward_hook(lambda _, given, result: whole.update(getattr(result, name))))
        with torch.no_grad():
            self.net(self.sp.SparseConvTensor(self.features, self.indices, self.extent, self.samples))
        for hook in hooks:
            hook.remove()
        self.known = {name: whole}


def milliseconds(run, o):
    times = []
    for turn in range(-3 if o.device == "cuda" else -1, o.repeat):
        if o.device == "cuda":
            begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            begin.record()
            run()
            end.record()
            end.synchronize()
            took = begin.elapsed_time(end)
        else:
            first = time.perf_counter()
            run()
            took = (time.perf_counter() - first) * 1e3
        if turn >= 0:
            times.append(took)
    return statistics.median(times)


def measured(run, o):
    """The time, and the peak of memory over what was there before, in MiB."""
    if o.device != "cuda":
        return {"ms": milliseconds(run, o), "mib": None}
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    took = milliseconds(run, o)
    return {"ms": took, "mib": torch.cuda.max_memory_allocated() / 2 ** 20}


def recorded(case):
    """A step with known maps as a CUDA graph."""
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            case.step(False)
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        case.loss = case.step(False)
    return graph


def backend(name):
    """The module, or None where it is not there."""
    if name in ("plain", "empty"):
        return PLAIN if name == "plain" else EMPTY
    if name == "pnet":
        import pnet.torch.spconv
        return pnet.torch.spconv
    try:
        return importlib.import_module("spconv.pytorch")
    except ImportError:
        return None


def run_backend(name, o, given, state):
    """A row of numbers; `state` has the weights and gradients of `plain`, once it has run."""
    sp = backend(name)
    if sp is None:
        return {"backend": name, "why": "it is not installed"}
    case = Case(o, sp, given)
    if "weights" in state:
        case.net.load_state_dict(state["weights"])
    found = {"backend": name}
    weights = {key: value.clone() for key, value in case.net.state_dict().items()}
    case.gradients(case.tensor(True), torch.float32)
    gradients = torch.cat([p.grad.reshape(-1).double().cpu() for p in case.net.parameters()])
    if name == "empty":
        pass
    elif "weights" in state:
        found["off"] = ((gradients - state["gradients"]).norm() / state["gradients"].norm()).item()
    else:
        state.update(weights=weights, gradients=gradients)
    case.net.load_state_dict(weights)
    case.start()
    found["step"] = measured(lambda: case.step(True), o)
    try:
        case.remember()
        found["known"] = measured(lambda: case.step(False), o)
        if o.device == "cuda":
            found["graph"] = measured(recorded(case).replay, o)
    except Exception as why:
        if name != "spconv":  # it refuses keys that were used before
            raise
        found["why"] = str(why).splitlines()[0] if str(why) else type(why).__name__
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--net", choices=("minkunet18a", "spunet"), default="minkunet18a")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--precision", choices=list(PRECISIONS), default="bf16")
    parser.add_argument("--voxels", type=int, default=100000)
    parser.add_argument("--samples", type=int)
    parser.add_argument("--points", nargs="*", default=[])
    parser.add_argument("--cell", type=float, default=0.05)
    parser.add_argument("--narrow", type=int, default=1)
    parser.add_argument("--backends", default="plain,pnet,empty,spconv")
    parser.add_argument("--rows", default="random,curve")
    parser.add_argument("--repeat", type=int, default=20)
    parser.add_argument("--json", action="store_true")
    o = parser.parse_args()
    if o.device == "cuda" and not torch.cuda.is_available():
        sys.exit("spconv.py: PyTorch finds no GPU")
    if o.samples is None:
        o.samples = 3 if o.net == "spunet" else 1
    torch.set_float32_matmul_precision("highest")
    rows = []
    names = sorted(o.backends.split(","), key=lambda name: name != "plain")  # the others are compared with it
    for name in names:
        if name not in ("plain", "pnet", "empty", "spconv"):
            sys.exit(f"spconv.py: there is no backend {name!r}")
    for order in o.rows.split(","):
        if order not in ("random", "curve"):
            sys.exit(f"spconv.py: rows are random or curve, not {order!r}")
        given, state = batch(o, order), {}
        rows += [run_backend(name, o, given, state) | {"order": order} for name in names]
    result = {"net": o.net, "device": torch.cuda.get_device_name() if o.device == "cuda" else "cpu", "precision": o.precision,
              "voxels": len(given[1]), "samples": given[4], "torch": torch.__version__, "rows": rows}
    if o.json:
        print(json.dumps(result))
        return
    print(f"{o.net}, {result['voxels']} voxels in {result['samples']} samples, {o.precision}, {result['device']}, PyTorch "
          f"{torch.__version__}")
    print(f"{'backend':8} {'rows':8} {'off':>9}" + "".join(f"{name + ' ms':>12}{'MiB':>9}" for name in ("step", "known", "graph")))
    for row in rows:
        line = f"{row['backend']:8} {row['order']:8} " + (f"{row['off']:9.1e}" if "off" in row else " " * 9)
        for name in ("step", "known", "graph"):
            cell = row.get(name)
            line += f"{cell['ms']:12.2f}" if cell else f"{'-':>12}"
            line += f"{cell['mib']:9.0f}" if cell and cell["mib"] is not None else f"{'-':>9}"
        print(line + (f"  {row['why']}" if "why" in row else ""))


if __name__ == "__main__":
    main()
