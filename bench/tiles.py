#!/usr/bin/env python3
"""Memory and time of `pnetc infer --tile` on LAS files of rising size: the peak should not rise with the number of points.

    python3 bench/tiles.py PNETC [--points 1e6,1e7] [--model tests/cli/tiny.pnet] [--set v=20cm] [--tile 200m] [--whole] [--info] [--threads N]

The files are made here, 2.5 points a square metre as of an airborne scan, flight line by flight line; the weights are those of two
steps on synthetic rooms, since their values do not matter. A row has the largest resident memory (ru_maxrss), the wall time, and
what `infer -v` says: sorting points into tiles, the tiles, of these the network, writing; then the share of the time that is not the
network's. --whole runs without tiles as well, and compares the two outputs; --info runs `pnetc info` on the files, and nothing else. Files
lie in TMPDIR: some 20 bytes a point and another 60 while tiles are computed. Needs NumPy, in a process of its own: a program that
is started counts the memory of the one that starts it as its own.
"""
import argparse
import filecmp
import os
import pathlib
import re
import subprocess
import sys
import tempfile

PIECE = 1000000
DENSITY = 2.5
RECORD = [("xyz", "<i4", 3), ("intensity", "<u2"), ("rest", "u1", 6)]
RECORD_BYTES = 20


def head_of(numpy, points, side):
    head = numpy.zeros(227, "u1")
    head[:4] = list(b"LASF")
    head[24:26] = 1, 2
    head[94:96] = numpy.array([227], "<u2").view("u1")
    head[96:100] = numpy.array([227], "<u4").view("u1")
    head[105:107] = numpy.array([RECORD_BYTES], "<u2").view("u1")
    head[107:115] = numpy.array([points, points], "<u4").view("u1")
    scale, offset = [0.001] * 3, [345000.0, 5400000.0, 0.0]
    box = [345000 + side, 345000.0, 5400000 + side, 5400000.0, 30.0, 0.0]
    head[131:227] = numpy.array(scale + offset + box, "<f8").view("u1")
    return head.tobytes()


def make_las(path, points):
    """Writes an airborne scan: hills, and trees on some of the ground."""
    try:
        import numpy
    except ImportError as error:
        sys.exit(f"tiles.py: NumPy is not there: {error}")
    side = (points / DENSITY) ** 0.5
    draw = numpy.random.default_rng(5)
    with open(path, "wb") as file:
        file.write(head_of(numpy, points, side))
        for first in range(0, points, PIECE):
            rows = numpy.arange(first, min(first + PIECE, points))
            records = numpy.zeros(len(rows), RECORD)
            x = side * draw.random(len(rows))
            y = numpy.minimum(side * rows / points + draw.random(len(rows)), side)
            tree = 10 * draw.random(len(rows)) * (draw.random(len(rows)) < 0.3)
            z = 5 + 3 * numpy.sin(x / 20) + 2 * numpy.cos(y / 15) + tree
            records["xyz"] = numpy.rint(1000 * numpy.stack([x, y, z], 1))
            records["intensity"] = draw.integers(0, 60000, len(rows))
            records["rest"][:, 0] = 9
            records["rest"][:, 1] = 1
            file.write(records.tobytes())


def run(command):
    """Runs a command; returns its standard error, seconds and the largest resident memory in MiB."""
    begin = os.times().elapsed
    with tempfile.TemporaryFile("w+") as said:
        child = subprocess.Popen(command, stderr=said, stdout=subprocess.DEVNULL)
        _, status, used = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        said.seek(0)
        text = said.read()
    if child.returncode:
        sys.exit(f"{' '.join(map(str, command))}: {text}")
    return text, os.times().elapsed - begin, used.ru_maxrss / 1024


def main():
    o = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    o.add_argument("pnetc")
    o.add_argument("--points", default="1e6,1e7")
    o.add_argument("--model", default="tests/cli/tiny.pnet")
    o.add_argument("--set", action="append", default=[])
    o.add_argument("--tile", default="200m")
    o.add_argument("--whole", action="store_true")
    o.add_argument("--info", action="store_true")
    o.add_argument("--threads", default=str(os.cpu_count()))
    o = o.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        sets = [word for s in o.set for word in ("--set", s)]
        (folder / "run.yaml").write_text("data: rooms\nsteps: 2\nbatch_size: 1\neval_every: 0\n")
        run([o.pnetc, "data", "synth", "rooms", "-o", folder / "rooms", "--count", "10", "--points", "600"])
        run([o.pnetc, "train", o.model, "--config", folder / "run.yaml", "-o", folder / "run", "-q"] + sets)
        print(f"{'points':>10} {'MiB':>7} {'s':>8} {'sort':>7} {'tiles':>7} {'network':>8} {'write':>7}  outside")
        for points in (int(float(n)) for n in o.points.split(",")):
            cloud = folder / "scan.las"
            run([sys.executable, __file__, "make", cloud, str(points)])
            if o.info:
                _, seconds, peak = run([o.pnetc, "info", cloud])
                print(f"{points:10d} {peak:7.0f} {seconds:8.1f}", flush=True)
                continue
            command = [o.pnetc, "infer", o.model, "--weights", folder / "run", "--input", cloud, "-v", "--threads", o.threads,
                       "--map", "rgb=intensity*1/65535"]
            text, seconds, peak = run(command + ["-o", folder / "tiled.las", "--tile", o.tile])
            parts = [float(n) for n in re.findall(r"(?:sort|tiles|network|write) ([\d.]+) s", text)]
            print(f"{points:10d} {peak:7.0f} {seconds:8.1f} {parts[0]:7.1f} {parts[1]:7.1f} {parts[2]:8.1f} {parts[3]:7.1f}"
                  f"  {100 * (1 - parts[2] / seconds):.0f}%", flush=True)
            if o.whole:
                _, seconds, peak = run(command + ["-o", folder / "whole.las"])
                same = filecmp.cmp(folder / "whole.las", folder / "tiled.las", False)
                print(f"{'whole':>10} {peak:7.0f} {seconds:8.1f}  {'the same bytes' if same else 'OTHER BYTES'}", flush=True)


if __name__ == "__main__":
    if sys.argv[1:2] == ["make"]:
        make_las(sys.argv[2], int(sys.argv[3]))
    else:
        main()
