"""python -m pnet.convert, with PyTorch: what it takes out of checkpoints, and a network of PyTorch that gives the same results
after pnetc import. tests/exchange/test_convert.sh runs this with a Python that has PyTorch."""

import argparse
import contextlib
import io
import json
import os
import struct
import subprocess
import tempfile
import unittest

import numpy
import torch

from pnet import convert

PNETC = os.environ["PNETC"]
TYPES = {
    "F64": numpy.float64, "F32": numpy.float32, "F16": numpy.float16, "BF16": numpy.uint16, "I64": numpy.int64, "U8": numpy.uint8,
    "BOOL": numpy.bool_,
}


def parse(path):
    """A safetensors file by its definition: names in the order of their data, arrays, metadata."""
    data = open(path, "rb").read()
    size = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:8 + size])
    metadata = header.pop("__metadata__", {})
    arrays, end = {}, 0
    for name, t in sorted(header.items(), key=lambda item: item[1]["data_offsets"]):
        begin, after = t["data_offsets"]
        assert begin == end and (begin == after or begin % numpy.dtype(TYPES[t["dtype"]]).itemsize == 0)
        end = after
        numbers = numpy.frombuffer(data[8 + size + begin:8 + size + after], TYPES[t["dtype"]])
        arrays[name] = (t["dtype"], numbers.reshape(t["shape"]))
    assert 8 + size + end == len(data)
    return arrays, metadata


class Convert(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def path(self, name):
        return os.path.join(self.folder, name)

    def run_convert(self, checkpoint, *options):
        """Saves, converts: exit code, standard output, standard error."""
        torch.save(checkpoint, self.path("in.pth"))
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = convert.main([self.path("in.pth"), "-o", self.path("out.safetensors"), *options])
        return code, out.getvalue(), err.getvalue()

    def test_types(self):
        whole = torch.arange(24.0).reshape(2, 3, 4)
        tensors = {
            "z": torch.tensor([1.5, -2.0]), "double": torch.tensor(2.5, dtype=torch.float64), "half": torch.ones(3).half(),
            "bfloat": torch.tensor([1.0, -3.0], dtype=torch.bfloat16), "count": torch.tensor(7),
            "flag": torch.tensor([True, False]), "byte": torch.tensor([1, 2, 255], dtype=torch.uint8),
            "turned": whole.transpose(0, 2), "part": whole[1, 1:], "none": torch.zeros(0, 3),
            "a": torch.nn.Parameter(torch.tensor([3.0])),
        }
        code, out, _ = self.run_convert(tensors)
        self.assertEqual(code, 0)
        self.assertIn("11 tensors\n", out)
        arrays, metadata = parse(self.path("out.safetensors"))
        self.assertEqual(metadata, {"format": "pt"})
        self.assertEqual([n for n in arrays if arrays[n][0] == "F32"], ["z", "turned", "part", "none", "a"])
        for name, tensor in tensors.items():
            kind, array = arrays[name]
            given = tensor.detach()
            given = given.view(torch.int16).numpy().view(numpy.uint16) if kind == "BF16" else given.numpy()
            self.assertEqual(array.shape, tuple(tensor.shape))
            self.assertTrue((array == given).all(), name)

    def test_wrappers(self):
        tensors = {"module.a.weight": torch.ones(2), "module.b": torch.zeros(1)}
        for checkpoint in (tensors, {"state_dict": tensors, "epoch": 3}, {"model": {"state_dict": tensors}, "optimizer": {}},
                           {"model_state_dict": tensors}):
            code, _, err = self.run_convert(checkpoint)
            self.assertEqual((code, err), (0, ""))
            self.assertEqual(list(parse(self.path("out.safetensors"))[0]), ["a.weight", "b"])
        code, out, _ = self.run_convert({"module.a": torch.ones(2), "b": torch.zeros(1), "step": 3})
        self.assertEqual(list(parse(self.path("out.safetensors"))[0]), ["module.a", "b"])
        self.assertIn("left out, no tensors: 'step'", out)

    def test_refusals(self):
        for checkpoint, text in (({"epoch": 3}, "no tensors in the checkpoint; its keys: 'epoch'"), ([1, 2], "holds a list"),
                                 ({"state_dict": {}}, "no tensors in the checkpoint['state_dict']; its keys: none"),
                                 ({"c": torch.ones(2, dtype=torch.complex64)}, "c is of type torch.complex64"),
                                 ({"s": torch.eye(3).to_sparse()}, "s is sparse"), ({3: torch.ones(1)}, "key 3 has no name"),
                                 ({"w": torch.ones(1), "config": argparse.Namespace(a=1)}, "argparse.Namespace")):
            code, _, err = self.run_convert(checkpoint)
            self.assertEqual(code, 4)
            self.assertIn(text, err)
            self.assertFalse(os.path.exists(self.path("out.safetensors")))
        code, _, err = self.run_convert({"w": torch.ones(1), "config": argparse.Namespace(a=1)}, "--allow", "argparse.Namespace")
        self.assertEqual((code, err), (0, ""))
        code, _, err = self.run_convert({"w": torch.ones(1)}, "--allow", "no.such.Class")
        self.assertEqual(code, 4)
        self.assertIn("--allow no.such.Class", err)

    def test_circles(self):
        """A checkpoint that holds itself is refused, and does not hang."""
        here, there = {"w": torch.ones(1)}, {}
        here["model"] = here
        there["state_dict"] = {"model_state_dict": there}
        for checkpoint, text in ((here, "the checkpoint['model'] holds itself"),
                                 (there, "the checkpoint['state_dict']['model_state_dict'] holds itself")):
            code, _, err = self.run_convert(checkpoint)
            self.assertEqual(code, 4)
            self.assertIn(text, err)
        beside = {"w": torch.ones(1)}
        beside["me"] = beside  # which is no wrapper
        code, out, err = self.run_convert(beside)
        self.assertEqual((code, err), (0, ""))
        self.assertIn("1 tensors; left out, no tensors: 'me'", out)
        deep = {"w": torch.ones(1)}
        for _ in range(200):
            deep = {"model": deep}
        self.assertEqual(self.run_convert(deep)[0], 0)

    def read_by_pnetc(self):
        return subprocess.run([PNETC, "info", self.path("out.safetensors")], capture_output=True, text=True)

    def test_names(self):
        """What is written pnetc reads; what it would not read is refused, and the message names the tensor."""
        for name, text in (("a\0b", r"the name 'a\x00b' has a zero byte"), ("__metadata__", "called __metadata__"),
                           ("\ud800", r"the name '\ud800' has half a surrogate pair"), ("", "an empty name"),
                           ("\ud83d\ude00", r"the name '\ud83d\ude00' has half a surrogate pair"), ("module.", "an empty name")):
            code, _, err = self.run_convert({name: torch.ones(2)})
            self.assertEqual(code, 4, ascii(name))
            self.assertIn(text, err)
            self.assertFalse(os.path.exists(self.path("out.safetensors")))
        names = ["a\nb", "\u20ac\U0001f600", "a\"b\\c", " ", "x" * 5000, "\x7f\x1b", "dtype", "module", "__metadata__."]
        code, _, err = self.run_convert({name: torch.full((1,), float(i)) for i, name in enumerate(names)})
        self.assertEqual((code, err), (0, ""))
        done = self.read_by_pnetc()
        self.assertEqual(done.returncode, 0, done.stderr)
        arrays = parse(self.path("out.safetensors"))[0]
        self.assertEqual([arrays[name][1][0] for name in names], list(range(len(names))))

    def test_tensors(self):
        """Kinds of tensors: their numbers are written, or the message names the tensor."""
        whole = torch.arange(6.0)
        q = torch.quantize_per_tensor(whole, 0.1, 0, torch.qint8)
        for tensor, text in ((torch.empty(2, device="meta"), "t is on the device meta"), (q, "t is sparse, quantised"),
                             (torch.eye(3).to_sparse_csr(), "t is sparse"), (torch.ones(9 * [1]), "t has 9 dimensions"),
                             (torch.ones(2, dtype=torch.complex128), "torch.complex128")):
            with self.subTest(text):
                code, _, err = self.run_convert({"t": tensor})
                self.assertEqual(code, 4, err)
                self.assertIn(text, err)
        tensors = {"whole": whole, "part": whole[1::2], "same": whole, "wide": torch.ones(1).expand(4),
                   "number": torch.tensor(3.0), "turned": torch.complex(whole, whole).conj().imag, "deep": torch.ones(8 * [1])}
        self.assertTrue(tensors["turned"].is_neg())
        code, _, err = self.run_convert(tensors)
        self.assertEqual((code, err), (0, ""))
        self.assertEqual(self.read_by_pnetc().returncode, 0)
        arrays = parse(self.path("out.safetensors"))[0]
        wanted = {"whole": range(6), "part": [1, 3, 5], "same": range(6), "wide": [1] * 4, "number": 3,
                  "turned": [-i for i in range(6)], "deep": numpy.ones(8 * [1])}
        for name, numbers in wanted.items():
            self.assertTrue(numpy.array_equal(arrays[name][1], numpy.array(numbers, numpy.float32)), name)

    def test_files(self):
        err = io.StringIO()
        with contextlib.redirect_stderr(err):
            self.assertEqual(convert.main([self.path("none.pth"), "-o", self.path("out")]), 1)
            open(self.path("text.pth"), "w").write("no checkpoint\n")
            self.assertEqual(convert.main([self.path("text.pth"), "-o", self.path("out")]), 4)
        self.assertIn("none.pth: No such file", err.getvalue())
        self.assertEqual(os.listdir(self.folder), ["text.pth"])

    def test_network(self):
        """A dense network of PyTorch, down and up again, on a full grid: voxels outside of it are zeros in both."""
        torch.manual_seed(3)
        n, nn = 8, torch.nn
        net = nn.Sequential(
            nn.Conv3d(3, 8, 3, padding=1, bias=False), nn.BatchNorm3d(8), nn.ReLU(), nn.Conv3d(8, 12, 2, stride=2), nn.ReLU(),
            nn.Conv3d(12, 12, 3, padding=1, groups=2), nn.ReLU(), nn.ConvTranspose3d(12, 6, 2, stride=2, groups=3), nn.ReLU(),
            nn.Conv3d(6, 5, 1))
        net[1].running_mean.uniform_(-1, 1)
        net[1].running_var.uniform_(0.5, 2)
        net = torch.nn.DataParallel(net.eval())
        x = torch.rand(1, 3, n, n, n)  # channels, z, y, x
        with torch.no_grad():
            want = net.module(x)[0].permute(1, 2, 3, 0).reshape(-1, 5).numpy()
        open(self.path("net.pnet"), "w").write(
            "pnet 1\ninput p { xyz : position  f : feature[3] }\n"
            "net small(p: cloud) {\n  g = grid(p, 1m * [1, 2])\n"
            "  a = p.f -> pool(mean, to=g[0]) -> conv(8, kernel=3, name=\"l0\") -> bn(name=\"l1\") -> relu\n"
            "  b = a -> conv(12, kernel=2, to=g[1], bias=yes, name=\"l3\") -> relu\n"
            "  c = b -> conv(12, kernel=3, groups=2, bias=yes, name=\"l5\") -> relu\n"
            "  d = c -> conv(6, kernel=2, groups=3, to=g[0], bias=yes, name=\"l7\") -> relu\n"
            "  return d -> conv(5, kernel=1, bias=yes, name=\"l9\")\n}\ny = small(p)\n")
        open(self.path("map.yaml"), "w").write("'*': 'small.l*'\n")
        z, y, x_ = numpy.meshgrid(*[numpy.arange(n)] * 3, indexing="ij")
        columns = [c.reshape(-1, 1) + 0.5 for c in (x_, y, z)] + [x[0].permute(1, 2, 3, 0).reshape(-1, 3).numpy()]
        numpy.savetxt(self.path("cloud.csv"), numpy.concatenate(columns, 1), "%.9g", ",", header="x,y,z,f_0,f_1,f_2", comments="")
        code, _, err = self.run_convert({"model": net.state_dict()})
        self.assertEqual((code, err), (0, ""))
        for command in ("import net.pnet --weights out.safetensors --from torch --map map.yaml -o w.safetensors",
                        "infer net.pnet --weights w.safetensors --input cloud.csv -o y.npy -q",
                        "export net.pnet --weights w.safetensors --to torch --map map.yaml -o back.safetensors"):
            done = subprocess.run([PNETC, *command.split()], cwd=self.folder, capture_output=True, text=True)
            self.assertEqual(done.returncode, 0, done.stderr)
        have = numpy.load(self.path("y.npy"))
        self.assertLess(numpy.abs(have - want).max() / numpy.abs(want).max(), 2e-6)
        # back in PyTorch: the same tensors, by load_state_dict
        back = {name: torch.from_numpy(array.copy()) for name, (_, array) in parse(self.path("back.safetensors"))[0].items()}
        own = net.module.state_dict()
        self.assertEqual(net.module.load_state_dict(back, strict=True), nn.modules.module._IncompatibleKeys([], []))
        for name, tensor in back.items():
            self.assertTrue(torch.equal(tensor, own[name]), name)


if __name__ == "__main__":
    unittest.main()
