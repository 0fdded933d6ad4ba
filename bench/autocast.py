#!/usr/bin/env python3
"""The gradients of a network in PyTorch, in float32 and under autocast, beside pnet's.

    python3 bench/autocast.py FOLDER ... [--device cuda] [--all] [--json]

FOLDER is what `pnet-bench net MODEL --gradients --write FOLDER` wrote: a network with its weights, one batch, and
pnet's gradients in each precision of a device. The network is built from the steps in FOLDER; one that this script does
not know is an error. Of several folders, other seeds say, the means are printed too. All gradients are compared with
PyTorch's in float64:

    torch fp32          float32, without TF32
    torch bf16, fp16    torch.autocast; fp16 with the loss scaled as torch.amp.GradScaler begins
    fixed bf16, fp16    the same, with the signs of all rectifiers and the rows of all maxima as float64 has them
    stored bf16, fp16   float32, every result, gradient of a result and operand of a product rounded to 16 bits: what
                        docs/gpu.md promises of pnet, without a kernel of it
    pnet fp32 ..        pnet's own, of the device that wrote FOLDER
    pnet plain          the same on the CPU, without fusion

The exit code is 1 where pnet's network is not PyTorch's: a loss of plain or fp32 is off by 1e-5, or gradients of both
by 1e-2. One rectifier within rounding of zero may fall either way, and changes all gradients before it by some 1e-3.

A whole comparison on a machine with an NVIDIA GPU and PyTorch, with a static pnet-bench and three scenes in rooms/:

    for m in resnet18 minkunet18a fcgf; do
      ./pnet-bench net models/$m.pnet --device cuda --precision bf16 --gradients --write out/$m \\
        --scene rooms/train/000000.ply --scene rooms/val/000001.ply --scene rooms/test/000002.ply &&
      python3 bench/autocast.py out/$m --device cuda; done

Files of FOLDER:

    network.json      levels      name, kind, rows, splits [samples + 1]: the rows of each sample
                      tensors     role, level, width; of role "input" with a file inputN.npy [rows, width]
                      parameters  name, shape, offset in the vectors below, trained
                      geometry    kind, levels a and b; files below
                      steps       the forward schedule, nothing fused: op, class, inputs and output (tensors),
                                  parameters, geometry, arguments, draw (stream of random numbers)
                      losses      tensors whose sum is the loss; loss, precisions: their values
    weights.npy, gradients_plain.npy, gradients_PRECISION.npy   float32 vectors; plain is pnet's CPU without fusion
    geometryN_a, _b, _cell.npy   triplets: row of level a, row of level b, kernel cell
    geometryN_parent.npy         parent: for each row of level a its row of level b
"""
import argparse
import json
import math
import pathlib
import sys

import numpy as np
import torch
import torch.nn.functional as F

LOWS = {"bf16": torch.bfloat16, "fp16": torch.float16}
FIRST_SCALE = 65536.0  # torch.amp.GradScaler's, and pnet's


class Store(torch.autograd.Function):
    """Rounds a value and its gradient to a type of 16 bits; both stay float32."""

    @staticmethod
    def forward(ctx, x, low):
        ctx.low = low
        return x.to(low).to(x.dtype)

    @staticmethod
    def backward(ctx, g):
        return g.to(ctx.low).to(g.dtype), None


def philox(seed, purpose, step, stream, count):
    """Uniform numbers in [0, 1) as kernels/philox.h has them: Philox 4x32-10, four elements a block."""
    mask, block = np.uint64(0xFFFFFFFF), np.arange((count + 3) // 4, dtype=np.uint64)
    x = [block & mask, block >> np.uint64(32), np.full_like(block, step), np.full_like(block, stream)]
    k = [seed & 0xFFFFFFFF, (seed >> 32) ^ (purpose * 0x632BE5AB & 0xFFFFFFFF)]
    for _ in range(10):
        p, q = np.uint64(0xD2511F53) * x[0], np.uint64(0xCD9E8D57) * x[2]
        x = [(q >> np.uint64(32)) ^ x[1] ^ np.uint64(k[0]), q & mask,
             (p >> np.uint64(32)) ^ x[3] ^ np.uint64(k[1]), p & mask]
        k = [(k[0] + 0x9E3779B9) & 0xFFFFFFFF, (k[1] + 0xBB67AE85) & 0xFFFFFFFF]
    return (np.stack(x, 1).reshape(-1)[:count] >> np.uint64(8)).astype(np.float32) * np.float32(2.0**-24)


class Network:
    """What FOLDER holds, on a device."""

    def __init__(self, folder, device):
        self.folder, self.device = pathlib.Path(folder), device
        self.about = json.loads((self.folder / "network.json").read_text())
        self.levels, self.steps, self.params = (self.about[k] for k in ("levels", "steps", "parameters"))
        self.weights = self.array("weights")
        self.inputs = {i: torch.from_numpy(self.array(f"input{i}")).to(device)
                       for i, t in enumerate(self.about["tensors"])
                       if t["role"] == "input" and (self.folder / f"input{i}.npy").exists()}
        self.items = {}

    def array(self, name):
        return np.load(self.folder / f"{name}.npy")

    def geometry(self, item, part):
        if (item, part) not in self.items:
            data = torch.from_numpy(self.array(f"geometry{item}_{part}").astype(np.int64))
            self.items[item, part] = data.to(self.device)
        return self.items[item, part]

    def rows(self, level):
        return self.levels[level]["rows"]

    def level_of(self, tensor):
        return self.about["tensors"][tensor]["level"]

    def samples_of_rows(self, level):
        splits = torch.tensor(self.levels[level]["splits"], device=self.device)
        return torch.repeat_interleave(torch.arange(len(splits) - 1, device=self.device), splits.diff())

    def parent(self, step, level):
        """The coarse row of each row of `level`, and how many coarse rows there are."""
        out = self.level_of(step["out"])
        if step["geometry"]:
            item = self.about["geometry"][step["geometry"][0]]
            return self.geometry(step["geometry"][0], "parent"), self.rows(item["b"])
        return self.samples_of_rows(level), self.rows(out)


class Run:
    """One forward of a network. `low` rounds what is stored; `fixed` has the decisions of another run, by step."""

    def __init__(self, net, dtype, low=None, fixed=None):
        self.net, self.dtype, self.low, self.fixed = net, dtype, low, fixed
        self.decisions, self.flipped, self.decided = {}, 0, 0
        w = torch.from_numpy(net.weights).to(net.device, dtype)
        self.params = [w[p["offset"] : p["offset"] + math.prod(p["shape"])].reshape(p["shape"]).clone()
                       .requires_grad_(p["trained"]) for p in net.params]

    def loss(self, decisions):
        """`decisions`: those to count differences from, or None."""
        self.values = {i: self.store(x.to(self.dtype)) if x.is_floating_point() else x
                       for i, x in self.net.inputs.items()}
        self.compare = decisions
        for at, step in enumerate(self.net.steps):
            op = getattr(self, "op_" + step["op"], None)
            if step["class"] == "metric":  # nothing depends on it
                continue
            if op is None:
                sys.exit(f"autocast.py: no rule for the {step['class']} '{step['op']}' of {step['path']}")
            y = op(at, step, *[self.values[i] for i in step["in"]])
            self.values[step["out"]] = y if step["class"] == "loss" else self.store(y)
        return sum(self.wide(self.values[t]) for t in self.net.about["losses"])

    def store(self, x):
        return Store.apply(x, self.low) if self.low else x

    def operand(self, step, which):
        """A parameter of a product."""
        w = self.params[step["parameters"][which]]
        return w + (w.to(self.low).to(w.dtype) - w).detach() if self.low else w

    def param(self, step, which):
        return self.params[step["parameters"][which]]

    @staticmethod
    def wide(x):
        """Sums over rows are formed in float32 at least."""
        return x.float() if x.dtype in LOWS.values() else x

    def decide(self, at, made):
        """What a step decided: its own, or that of another run."""
        made = made.detach()
        if self.compare is not None:
            self.flipped += int((self.compare[at] != made).sum())
            self.decided += made.numel()
        self.decisions[at] = made
        return made if self.fixed is None else self.fixed[at]

    def op_conv(self, at, step, x):
        a = step["arguments"]
        if a["groups"] != 1:
            sys.exit(f"autocast.py: no rule for the groups of {step['path']}")
        w = self.operand(step, 0)
        if not step["geometry"]:
            y = x @ w[0]
        else:
            item = step["geometry"][0]
            to_a = self.net.about["geometry"][item]["a"] == self.net.level_of(step["out"])
            out, into = ("a", "b") if to_a else ("b", "a")
            rows, cells = self.net.rows(self.net.level_of(step["out"])), w.shape[0]
            place = self.net.geometry(item, out) * cells + self.net.geometry(item, "cell")
            near = self.wide(x)[self.net.geometry(item, into)]
            summed = near.new_zeros(rows * cells, x.shape[1]).index_add(0, place, near)
            summed = self.round_operand(summed).reshape(rows, cells * x.shape[1])
            y = summed @ w.reshape(-1, w.shape[2])
        return y + self.param(step, 1) if a["bias"] else y

    def round_operand(self, x):
        return x + (x.to(self.low).to(x.dtype) - x).detach() if self.low else x

    def op_linear(self, at, step, x):
        return F.linear(x, self.operand(step, 0), self.param(step, 1) if step["arguments"]["bias"] else None)

    def op_bn(self, at, step, x):
        eps = step["arguments"]["eps"]
        mean, var = self.param(step, 2), self.param(step, 3)
        if x.shape[0] <= 1:
            return F.batch_norm(x, mean, var, self.param(step, 0), self.param(step, 1), False, 0.0, eps)
        return F.batch_norm(x, None, None, self.param(step, 0), self.param(step, 1), True, 0.0, eps)

    def op_instancenorm(self, at, step, x):
        splits, parts = self.net.levels[self.net.level_of(step["in"][0])]["splits"], []
        weight, bias, eps = self.param(step, 0), self.param(step, 1), step["arguments"]["eps"]
        for begin, end in zip(splits, splits[1:]):
            if end - begin > 1:
                parts.append(F.batch_norm(x[begin:end], None, None, weight, bias, True, 0.0, eps))
            else:  # nothing varies in one row
                parts.append(x[begin:end] * 0 + bias.to(x.dtype))
        return torch.cat(parts)

    def op_relu(self, at, step, x):
        mask = self.decide(at, x > 0)
        return torch.relu(x) if self.fixed is None else x * mask

    def op_gelu(self, at, step, x):
        return F.gelu(x)

    def op_add(self, at, step, a, b):
        scale = step["arguments"]["scale"]
        return a + b if scale == 1 else a + scale * b

    def op_scale(self, at, step, x):
        return x * step["arguments"]["by"]

    def op_cat(self, at, step, *values):
        return torch.cat(values, 1)

    def op_ones(self, at, step):
        rows = self.net.rows(self.net.level_of(step["out"]))
        return torch.ones(rows, step["arguments"]["channels"], dtype=self.dtype, device=self.net.device)

    def op_l2norm(self, at, step, x):
        return F.normalize(x, dim=1, eps=step["arguments"]["eps"])

    def op_dropout(self, at, step, x):
        p = step["arguments"]["p"]
        unit = philox(self.net.about["seed"], 4, 0, step["draw"], x.numel()).reshape(x.shape)
        keep = torch.from_numpy(unit >= np.float32(p)).to(x.device)
        return torch.where(keep, x / (1 - p), 0 * x)

    def op_pool(self, at, step, x):
        if not x.is_floating_point():
            sys.exit(f"autocast.py: no rule for the labels of {step['path']}")
        level, kind = self.net.level_of(step["in"][0]), step["arguments"]["kind"]
        if level == self.net.level_of(step["out"]):
            return x
        parent, rows = self.net.parent(step, level)
        if kind == "max":
            return self.pool_max(at, x, parent, rows)
        total = self.wide(x).new_zeros(rows, x.shape[1]).index_add(0, parent, self.wide(x))
        if kind == "mean":
            total = total / torch.bincount(parent, minlength=rows).clamp(min=1)[:, None]
        return total.to(x.dtype)

    def pool_max(self, at, x, parent, rows):
        """The lowest row of those that have the maximum; 0 where a cell is empty."""
        with torch.no_grad():
            index = parent[:, None].expand_as(x)
            top = torch.full((rows, x.shape[1]), -math.inf, dtype=self.wide(x).dtype, device=x.device)
            top = top.scatter_reduce(0, index, self.wide(x), "amax")
            own = torch.arange(x.shape[0], device=x.device)[:, None].expand_as(x)
            own = torch.where(self.wide(x) == top[parent], own, x.shape[0])
            first = torch.full((rows, x.shape[1]), x.shape[0], dtype=torch.int64, device=x.device)
            first = first.scatter_reduce(0, index, own, "amin")
        first = self.decide(at, first)
        return torch.cat([x, x.new_zeros(1, x.shape[1])]).gather(0, first)

    def op_cross_entropy(self, at, step, x, label):
        a = step["arguments"]
        if step["geometry"]:
            x = x[self.net.geometry(step["geometry"][0], "parent")]
        weight = torch.tensor(a["weights"], dtype=x.dtype, device=x.device) if "weights" in a else None
        return F.cross_entropy(x, label.reshape(-1).long(), weight, ignore_index=-1, label_smoothing=a["smoothing"])


def gradients(net, dtype=torch.float32, autocast=None, low=None, fixed=None, compare=None):
    """(loss, gradients by parameter in float64, the run). 16-bit runs in fp16 scale the loss, and halve the scale until
    all gradients are finite, as GradScaler does over its first steps."""
    scale = FIRST_SCALE if torch.float16 in (autocast, low) else 1.0
    while True:
        run = Run(net, dtype, low, fixed)
        with torch.autocast(net.device.type, dtype=autocast or torch.bfloat16, enabled=autocast is not None):
            loss = run.loss(compare)
        (loss * scale).backward()
        found = [p.grad.double() / scale if p.grad is not None else None for p in run.params]
        if scale == 1 or all(g is None or bool(torch.isfinite(g).all()) for g in found):
            return float(loss.detach()), found, run
        scale /= 2


def pnet_gradients(net, name):
    x = torch.from_numpy(net.array("gradients_" + name)).to(net.device).double()
    return [x[p["offset"] : p["offset"] + math.prod(p["shape"])].reshape(p["shape"]) if p["trained"] else None
            for p in net.params]


class Sums:
    """Of |x - want|^2, |want|^2, |x|^2, x want."""

    def __init__(self, x=None, want=None):
        self.of = np.zeros(4)
        if x is not None:
            self.of += [float(s) for s in (((x - want) ** 2).sum(), (want**2).sum(), (x**2).sum(), (x * want).sum())]

    def add(self, other):
        self.of += other.of

    def error(self):
        return math.sqrt(self.of[0] / self.of[1]) if self.of[1] > 0 else math.nan

    def cosine(self):
        return self.of[3] / math.sqrt(self.of[1] * self.of[2]) if self.of[1] * self.of[2] > 0 else math.nan


class Part:
    """A parameter, the parameters of a level, or all."""

    def __init__(self, name, level, rows):
        self.name, self.level, self.rows, self.count, self.sums = name, level, rows, 0, {}

    def add(self, column, sums):
        self.sums.setdefault(column, Sums()).add(sums)

    def row(self):
        norm = math.sqrt(next(iter(self.sums.values())).of[1])
        return {"name": self.name, "level": self.level, "rows": self.rows, "norm": norm,
                "error": {c: s.error() for c, s in self.sums.items()},
                "cosine": {c: s.cosine() for c, s in self.sums.items()}}


def compare(net, want, columns):
    """The parts: (all, by level, by parameter)."""
    whole, levels, params = Part("all", "", None), {}, []
    for step in net.steps:
        for i in step["parameters"]:
            if not net.params[i]["trained"]:
                continue
            level = net.level_of(step["out"])
            name, rows = net.levels[level]["name"], net.rows(level)
            part = Part(net.params[i]["name"], name, rows)
            over = [part, levels.setdefault(level, Part(name, name, rows)), whole]
            for column, (_, found, _) in columns.items():
                sums = Sums(found[i], want[i])
                for p in over:
                    p.add(column, sums)
            for p in over:
                p.count += 1
            params.append(part)
    return whole, list(levels.values()), params


def show(net, loss, columns, whole, levels, params, everything):
    shares = "torch bf16"

    def line(part, text, second):
        r, share = part.row(), part.sums[shares].of[0] / whole.sums[shares].of[0]
        errors = "".join(f"{r['error'][c]:9.1e}" for c in columns)
        rows = "" if r["rows"] is None else r["rows"]
        print(f"{text:<44} {second:<8} {rows:>8} {r['norm']:9.2e}{errors} {100 * share:6.1f}%")

    def heading(first, second):
        tops, subs = zip(*(c.split() for c in columns))
        print("\n" + " " * 72 + "".join(f"{t:>9}" for t in tops) + "  share,")
        print(f"{first:<44} {second:<8} {'rows':>8} {'norm':>9}" + "".join(f"{s:>9}" for s in subs), shares)

    about = net.about
    print(f"{about['model']}, {about['mode']}, seed {about['seed']}: loss {loss:.9g} in float64; "
          f"pnet on {about['device']}, PyTorch {torch.__version__} on {net.device}")
    for c, (value, _, run) in columns.items():
        flips = f", {100 * run.flipped / run.decided:.2f}% of signs and maxima differ" if run and run.decided else ""
        print(f"{c:<12} loss off by {abs(value - loss) / abs(loss):.1e}, gradients by {whole.sums[c].error():.2e}, "
              f"cosine {whole.sums[c].cosine():.6f}{flips}")
    by_share = lambda p: -p.sums[shares].of[0]
    heading("level", "params")
    for p in sorted(levels, key=by_share):
        line(p, p.name, str(p.count))
    heading("parameter", "level")
    ranked = sorted(params, key=by_share)
    for p in ranked if everything else ranked[:10]:
        line(p, p.name, p.level)
    if not everything and len(ranked) > 10:
        rest = Part("rest", "", None)
        for p in ranked[10:]:
            for c, s in p.sums.items():
                rest.add(c, s)
        line(rest, f"{len(ranked) - 10} others (--all)", "")


def measure(folder, device):
    """One folder: (network, loss, columns, parts); ends the program where pnet's network is another one."""
    net = Network(folder, device)
    loss, want, exact = gradients(net, torch.float64)
    decisions = exact.decisions
    columns = {"torch fp32": gradients(net, compare=decisions)}
    for name, low in LOWS.items():
        columns["torch " + name] = gradients(net, autocast=low, compare=decisions)
    for name, low in LOWS.items():
        columns["fixed " + name] = gradients(net, autocast=low, fixed=decisions)
    for name, low in LOWS.items():
        columns["stored " + name] = gradients(net, low=low, compare=decisions)
    for name, value in net.about["precisions"].items():
        columns["pnet " + name] = (value, pnet_gradients(net, name), None)
    columns["pnet plain"] = (net.about["loss"], pnet_gradients(net, "plain"), None)
    parts = compare(net, want, columns)
    own = ("pnet fp32", "pnet plain")
    losses, errors = [columns[c][0] for c in own], [parts[0].sums[c].error() for c in own]
    if not all(abs(x - loss) <= 1e-5 * abs(loss) for x in losses) or not any(x <= 1e-2 for x in errors):
        sys.exit(f"autocast.py: {folder}: the networks are not the same: pnet's losses in fp32 are {losses}, PyTorch's "
                 f"is {loss}; gradients are off by {errors}")
    return net, loss, columns, parts


def show_json(net, loss, columns, whole, levels, params):
    differing = {c: run.flipped / run.decided for c, (_, _, run) in columns.items() if run and run.decided}
    print(json.dumps({**{k: net.about[k] for k in ("model", "mode", "device", "seed")}, "loss": loss,
                      "losses": {c: value for c, (value, _, _) in columns.items()}, "all": whole.row(),
                      "differing_decisions": differing, "levels": [p.row() for p in levels],
                      "parameters": [p.row() for p in params]}))


def show_means(wholes):
    print(f"\nmeans of {len(wholes)} folders, and standard deviations of one")
    for c in wholes[0].sums:
        e, cosine = (np.array([f(w.sums[c]) for w in wholes]) for f in (Sums.error, Sums.cosine))
        print(f"{c:<12} gradients off by {e.mean():.2e} +- {e.std(ddof=1):.1e}, cosine {cosine.mean():.4f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="+")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--all", action="store_true", help="every parameter")
    parser.add_argument("--json", action="store_true", help="an object a folder, one a line")
    o = parser.parse_args()
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction = False
    torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction = False
    wholes = []
    for folder in o.folder:
        net, loss, columns, parts = measure(folder, torch.device(o.device))
        wholes.append(parts[0])
        if o.json:
            show_json(net, loss, columns, *parts)
        else:
            show(net, loss, columns, *parts, o.all)
    if len(wholes) > 1 and not o.json:
        show_means(wholes)


if __name__ == "__main__":
    main()
