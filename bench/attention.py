#!/usr/bin/env python3
"""The time of PyTorch's attention on contiguous buckets: what pnet's attend is compared with.

    python3 bench/attention.py [--points 614400] [--width 64] [--heads 4,2,1] [--scope 4096] [--precision bf16] [--json]

Rows are in the order in which they attend, and every scope has as many rows: a batch of scopes, for
torch.nn.functional.scaled_dot_product_attention. Queries, keys and values are the thirds of one matrix [points, 3 width], as a
linear layer writes it; nothing is gathered, shifted or copied. --points is rounded down to whole scopes; --scope and --heads may
be lists.

For each backend of PyTorch (flash, cudnn, efficient) the table has the median time of forward, as in inference, and of forward
and backward together, taken between CUDA events, and `backward`, the difference of both. `off by` is the error of the result
against float64 on the first scope, relative, in the 2-norm. A backend that does not run on such tensors says so.

pnet's time of the same, with its gather and orders:

    pnet-bench layer 'x -> linear(192) -> attend(4, scope=8, order="xor_div")' --points 614400 --device cuda --precision bf16

The script needs PyTorch with CUDA and an NVIDIA GPU, and ends with a sentence where one of them is not there.
"""
import argparse
import json
import statistics
import sys

try:
    import torch
    import torch.nn.functional as F
    from torch.nn.attention import SDPBackend, sdpa_kernel
except ImportError as error:
    sys.exit(f"attention.py: PyTorch is not there: {error}")

PRECISIONS = {"bf16": torch.bfloat16, "fp16": torch.float16}
BACKENDS = {"flash": SDPBackend.FLASH_ATTENTION, "cudnn": SDPBackend.CUDNN_ATTENTION,
            "efficient": SDPBackend.EFFICIENT_ATTENTION}


def numbers(text):
    """A list of whole numbers above 0: "4,2,1"."""
    found = [int(n) for n in text.split(",")]
    if not all(n > 0 for n in found):
        raise argparse.ArgumentTypeError(f"{text} has a number below 1")
    return found


def heads_of(matrix, scope, heads):
    """Views of the thirds of [points, 3 width]: [scopes, heads, scope, width / heads] each."""
    parts = matrix.view(-1, scope, 3, heads, matrix.shape[1] // (3 * heads))
    return [part.transpose(1, 2) for part in parts.unbind(2)]


def milliseconds(run, repeat):
    """The median of `repeat` runs, after three others."""
    times = []
    for turn in range(-3, repeat):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        run()
        end.record()
        end.synchronize()
        if turn >= 0:
            times.append(begin.elapsed_time(end))
    return statistics.median(times)


def error_of(matrix, scope, heads):
    """Of the first scope, against float64."""
    parts = heads_of(matrix[:scope], scope, heads)
    got = F.scaled_dot_product_attention(*parts).double()
    q, k, v = (x.double() for x in parts)
    want = torch.softmax(q @ k.transpose(-1, -2) * q.shape[-1] ** -0.5, -1) @ v
    return float((got - want).norm() / want.norm())


def measure(matrix, scope, heads, backend, repeat):
    """A row: the times of one backend, or why it does not run."""
    fixed = heads_of(matrix, scope, heads)
    learned = [x.detach().requires_grad_() for x in fixed]  # of their own, so that gradients are not copied into one matrix
    points, width = matrix.shape[0], matrix.shape[1] // 3
    gradient = torch.randn(points, width, device=matrix.device, dtype=matrix.dtype)  # laid out as the result is
    gradient = gradient.view(-1, scope, heads, width // heads).transpose(1, 2)

    def forward():
        with torch.no_grad():
            F.scaled_dot_product_attention(*fixed)

    def both():
        torch.autograd.grad(F.scaled_dot_product_attention(*learned), learned, gradient)

    try:
        with sdpa_kernel(BACKENDS[backend]):
            row = {"error": error_of(matrix, scope, heads), "forward_ms": milliseconds(forward, repeat),
                   "both_ms": milliseconds(both, repeat)}
    except RuntimeError as error:
        return {"refused": str(error).strip().split("\n")[0]}
    return {**row, "backward_ms": row["both_ms"] - row["forward_ms"]}


def show(row):
    if "refused" in row:
        print(f"{row['scope']:>7} {row['heads']:>6} {row['backend']:<10} does not run: {row['refused']}")
        return
    print(f"{row['scope']:>7} {row['heads']:>6} {row['backend']:<10} {row['forward_ms']:>11.3f} {row['both_ms']:>12.3f} "
          f"{row['backward_ms']:>12.3f} {row['error']:>9.1e}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--points", type=int, default=614400)
    parser.add_argument("--width", type=int, default=64, help="channels of the result")
    parser.add_argument("--heads", type=numbers, default=[4, 2, 1])
    parser.add_argument("--scope", type=numbers, default=[4096], help="rows that attend to each other")
    parser.add_argument("--precision", choices=PRECISIONS, default="bf16")
    parser.add_argument("--repeat", type=int, default=20, help="timed runs, of which the median is taken")
    parser.add_argument("--json", action="store_true", help="one object")
    o = parser.parse_args()
    for heads in o.heads:
        if o.width % heads:
            sys.exit(f"attention.py: {heads} heads do not divide {o.width} channels")
    if o.repeat < 1 or o.points < max(o.scope):
        sys.exit("attention.py: at least one run, and as many points as a scope has")
    if not torch.cuda.is_available():
        sys.exit("attention.py: PyTorch sees no GPU")
    torch.manual_seed(1)
    rows = []
    if not o.json:
        print(f"{torch.cuda.get_device_name()}, PyTorch {torch.__version__}, {o.precision}, {o.points} points, "
              f"{o.width} channels, medians of {o.repeat} runs")
        print(f"{'scope':>7} {'heads':>6} {'backend':<10} {'forward ms':>11} {'and back ms':>12} {'backward ms':>12} "
              f"{'off by':>9}")
    for scope in o.scope:
        points = o.points // scope * scope
        matrix = torch.randn(points, 3 * o.width, device="cuda", dtype=PRECISIONS[o.precision])
        for heads in o.heads:
            for backend in BACKENDS:
                row = {"points": points, "scope": scope, "heads": heads, "backend": backend,
                       **measure(matrix, scope, heads, backend, o.repeat)}
                rows.append(row)
                if not o.json:
                    show(row)
    if o.json:
        print(json.dumps({"device": torch.cuda.get_device_name(), "torch": torch.__version__,
                          "precision": o.precision, "width": o.width, "rows": rows}))


if __name__ == "__main__":
    main()
