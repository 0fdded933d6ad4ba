"""The scripts of bench/ that time pnet.torch run, in a short form, and their numbers are of the right kind."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

import numpy
import torch

BENCH = pathlib.Path(__file__).resolve().parents[3] / "bench"


class Bench(unittest.TestCase):
    def run_script(self, name, *options):
        done = subprocess.run([sys.executable, str(BENCH / name), *options], capture_output=True, text=True, timeout=600,
                              env={**os.environ, "OMP_WAIT_POLICY": "passive",
                                   "PYTHONPATH": os.pathsep.join(sys.path)})
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def test_torch_calls(self):
        found = json.loads(self.run_script("torch_calls.py", "--device", "cpu", "--layers", "3", "--repeat", "5", "--json"))
        self.assertEqual((found["device"], found["layers"], found["rows"]), ("cpu", 3, 200))
        self.assertGreater(min(found[f"{name}_us"] for name in ("library", "nothing", "raw", "spconv", "by_tap")), 0)
        self.assertGreater(found["eager_ms"], 0)
        said = self.run_script("torch_calls.py", "--device", "cpu", "--layers", "2", "--repeat", "2", "--precision", "bf16")
        self.assertIn("over a call", said)

    def test_rows(self):
        """Layers of all kinds; no row has other bits where rows lie in another order."""
        found = json.loads(self.run_script("rows.py", "--device", "cpu", "--voxels", "2000", "--samples", "2", "--channels", "8",
                                           "--repeat", "1", "--json"))
        self.assertEqual(len(found["rows"]), 3 * 7)
        for row in found["rows"]:
            self.assertEqual((row["kind"], row["order"], row["off"]), (row["kind"], row["order"], 0))
            self.assertGreater(min(row[name] for name in ("make", "forward", "backward")), 0)

    def test_spconv(self):
        """Both networks; gradients agree with those of plain PyTorch."""
        short = "--device", "cpu", "--voxels", "3000", "--narrow", "16", "--repeat", "1"
        for net, samples in (("minkunet18a", 1), ("spunet", 3)):
            found = json.loads(self.run_script("spconv.py", *short, "--net", net, "--precision", "fp32", "--backends",
                                               "plain,pnet", "--json"))
            self.assertEqual((found["net"], found["samples"], found["voxels"]), (net, samples, 3000 * samples))
            self.assertEqual([(row["backend"], row["order"]) for row in found["rows"]],
                             [(name, order) for order in ("random", "curve") for name in ("plain", "pnet")])
            for row in found["rows"]:
                self.assertLess(row.get("off", 0), 1e-3)
                self.assertGreater(min(row[name]["ms"] for name in ("step", "known")), 0)
        with tempfile.TemporaryDirectory() as folder:
            xyz = torch.rand(500, 3, generator=torch.Generator().manual_seed(1))
            numpy.save(f"{folder}/a.npy", xyz.numpy())
            with open(f"{folder}/b.ply", "wb") as file:
                file.write(b"ply\nformat binary_little_endian 1.0\nelement vertex 500\nproperty float x\nproperty float y\n"
                           b"property float z\nproperty uchar red\nend_header\n")
                rows = numpy.zeros(500, [("x", "<f4"), ("y", "<f4"), ("z", "<f4"), ("red", "u1")])
                for axis, name in enumerate("xyz"):
                    rows[name] = xyz[:, axis].numpy()
                file.write(rows.tobytes())
            said = self.run_script("spconv.py", *short, "--points", f"{folder}/a.npy", f"{folder}/b.ply", "--cell", "0.03",
                                   "--backends", "pnet")
            cells = len(torch.unique((xyz.double() / 0.03).floor(), dim=0))
            self.assertIn(f"minkunet18a, {2 * cells} voxels in 2 samples, bf16, cpu", said)


if __name__ == "__main__":
    unittest.main()
