#!/usr/bin/env python3
"""What a convolution called from PyTorch costs the host, beside the library's own calls.

    python3 bench/torch_calls.py [--device cpu|cuda] [--layers 40] [--rows 200] [--channels 16] [--precision fp32|bf16|fp16]
                                 [--repeat 50] [--json]

A chain of submanifold convolutions with kernel 3 on one small set of voxels, so that the work itself is small. The table has, in
microseconds a layer, medians of --repeat runs of the whole chain:

    library    the three calls of the library (forward, both gradients) alone, with arguments that are there already
    raw        pnet.torch.VoxelSet.conv with weights [taps, in, out], forward and backward
    spconv     pnet.torch.spconv.SubMConv3d, forward and backward
    by_tap     the same behind weights_by_tap(): no weights and no gradients of weights are copied
    over       what a call of the library costs more: (the row - library) / 3, without what PyTorch takes for layers that do nothing

and in milliseconds the whole chain, forward and backward, eager; on a GPU also the time until it has finished, and replayed as a CUDA
graph. On a GPU times of the host are those until calls return, while the GPU works on; without it, --device cpu has the same Python.

PYTHONPATH is the folder with the package pnet; LD_LIBRARY_PATH the one with libpnet.so.0, unless it lies in the package.
"""
import argparse
import copy
import json
import statistics
import sys
import time

try:
    import torch
except ImportError as error:
    sys.exit(f"torch_calls.py: PyTorch is not there: {error}")
import pnet.torch
import pnet.torch.spconv as spconv
from pnet.torch import _calls

PRECISIONS = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}


class Nothing(torch.autograd.Function):
    """A layer that does nothing: what PyTorch takes for itself."""

    @staticmethod
    def forward(ctx, x, weight):
        ctx.save_for_backward(x, weight)
        return x.clone()

    @staticmethod
    def backward(ctx, gradient):
        x, weight = ctx.saved_tensors
        return gradient, weight.detach()


def wait(device):
    if device == "cuda":
        torch.cuda.synchronize()


def host(run, device, repeat):
    """Seconds that the host takes, and until the work is over: medians."""
    returned, finished = [], []
    for turn in range(-10, repeat):
        wait(device)
        begin = time.perf_counter()
        run()
        end = time.perf_counter()
        wait(device)
        if turn >= 0:
            returned.append(end - begin)
            finished.append(time.perf_counter() - begin)
    return statistics.median(returned), statistics.median(finished)


def voxels(rows, device):
    """So many voxels, close together."""
    side = round((2 * rows) ** (1 / 3)) + 1
    every = torch.cartesian_prod(torch.zeros(1, dtype=torch.int64), *(torch.arange(side) for _ in range(3))).int()
    return every[torch.randperm(len(every), generator=torch.Generator().manual_seed(1))[:rows]].to(device), [side] * 3


def chain(call, x, weights):
    """Forward and backward through layers of call(x, weight)."""
    def run():
        for weight in weights:
            weight.grad = None
        y = x
        for weight in weights:
            y = call(y, weight)
        y.backward(x)
    return run


def library_alone(made, x, weight, layers):
    """The three calls of each layer, through the pointers of frames that are filled once."""
    x, weight = x.detach(), weight.detach()
    gradient = torch.randn_like(x)
    calls, kept = [], []
    for kind, left, right in ((_calls.FORWARD, x, weight), (_calls.GRAD_INPUT, gradient, weight),
                              (_calls.GRAD_WEIGHT, x, gradient)):
        frames = _calls._Frames()
        before, _calls._frames = _calls._frames, frames
        try:
            if kind == _calls.FORWARD:
                kept.append(_calls.forward(made, left, right, None, 1))
            elif kind == _calls.GRAD_INPUT:
                kept.append(_calls.grad_input(made, left, right, 1))
            else:
                kept.append(_calls.grad_weight(made, left, right, 1))
        finally:
            _calls._frames = before
        options = frames.frame.options
        if options.workspace_bytes:  # the one of the call is given back
            kept.append(torch.empty(options.workspace_bytes, dtype=torch.uint8, device=x.device))
            options.workspace = kept[-1].data_ptr()
        kept.append(frames)
        calls.append((_calls._sums[kind], frames))
    handle = made.handle()

    def run():
        for _ in range(layers):
            for function, f in calls:
                if function(handle, f.left, f.right, f.options, f.result, f.error):
                    raise f.failed(1)
    run.kept = kept, gradient, x, weight
    return run


def graph_of(run):
    """The run recorded, after some on a stream of its own."""
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            run()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        run()
    return graph


def measure(o):
    kind, layers = PRECISIONS[o.precision], o.layers
    indices, extent = voxels(o.rows, o.device)
    torch.manual_seed(1)
    made = pnet.torch.voxel_set(indices, extent)
    x = torch.randn(len(indices), o.channels, device=o.device)
    bound = (27 * o.channels) ** -0.5
    weights = [(torch.rand(27, o.channels, o.channels, device=o.device) * 2 - 1).mul_(bound).requires_grad_()
               for _ in range(layers)]
    net = spconv.SparseSequential(*(spconv.SubMConv3d(o.channels, o.channels, 3, bias=False, indice_key="k")
                                    for _ in range(layers))).to(o.device)
    sparse = spconv.SparseConvTensor(x, indices, extent, 1).keep_sets()

    def steps(net):
        parameters = list(net.parameters())

        def run():
            for parameter in parameters:
                parameter.grad = None
            with torch.autocast(o.device, kind, enabled=kind != torch.float32):
                y = net(sparse).features
            y.backward(torch.ones_like(y))
        return run

    def conv(y, weight):
        with torch.autocast(o.device, kind, enabled=kind != torch.float32):
            return made.conv(y, weight)

    stored = kind if o.device == "cuda" else torch.float32
    rows = {}
    rows["library"] = host(library_alone(made._triplets, x.to(stored), weights[0], layers), o.device, o.repeat)
    rows["nothing"] = host(chain(Nothing.apply, x, weights), o.device, o.repeat)
    rows["raw"] = host(chain(conv, x.to(kind), weights), o.device, o.repeat)
    whole = steps(net)
    rows["spconv"] = host(whole, o.device, o.repeat)
    rows["by_tap"] = host(steps(spconv.weights_by_tap(copy.deepcopy(net))), o.device, o.repeat)
    result = {"device": torch.cuda.get_device_name() if o.device == "cuda" else "cpu", "precision": o.precision, "layers": layers,
              "rows": len(indices), "channels": o.channels, "torch": torch.__version__, "eager_ms": rows["spconv"][0] * 1e3}
    for name, (returned, _) in rows.items():
        result[f"{name}_us"] = returned / layers * 1e6
    for name in "raw", "spconv", "by_tap":
        result[f"{name}_over_us"] = (rows[name][0] - rows["library"][0] - rows["nothing"][0]) / layers / 3 * 1e6
    if o.device == "cuda":
        result["eager_finished_ms"] = rows["spconv"][1] * 1e3
        graph = graph_of(whole)
        returned, finished = host(graph.replay, o.device, o.repeat)
        result["graph_ms"], result["graph_finished_ms"] = returned * 1e3, finished * 1e3
    return result


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--layers", type=int, default=40)
    parser.add_argument("--rows", type=int, default=200)
    parser.add_argument("--channels", type=int, default=16)
    parser.add_argument("--precision", choices=list(PRECISIONS), default="fp32")
    parser.add_argument("--repeat", type=int, default=50)
    parser.add_argument("--json", action="store_true")
    o = parser.parse_args()
    if o.device == "cuda" and not torch.cuda.is_available():
        sys.exit("torch_calls.py: PyTorch finds no GPU")
    found = measure(o)
    if o.json:
        print(json.dumps(found))
        return
    print(f"{found['device']}, {found['precision']}, {found['layers']} layers of {found['channels']} channels on {found['rows']} "
          f"voxels, PyTorch {found['torch']}")
    print("us a layer, forward and backward:")
    for name in "library", "nothing", "raw", "spconv", "by_tap":
        over = f", {found[f'{name}_over_us']:6.1f} over a call" if f"{name}_over_us" in found else ""
        print(f"  {name:8} {found[f'{name}_us']:8.1f}{over}")
    print(f"ms of the host, {found['layers']} layers of spconv: eager {found['eager_ms']:.2f}" + (
        f", until it has finished {found['eager_finished_ms']:.2f}; as a CUDA graph {found['graph_ms']:.3f}, until it has finished "
        f"{found['graph_finished_ms']:.2f}" if "graph_ms" in found else ""))


if __name__ == "__main__":
    main()
