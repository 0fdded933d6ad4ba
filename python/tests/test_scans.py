"""python -m pnet.convert on PTX files, whose text each test writes, and what it says of files that are none."""

import contextlib
import io
import json
import os
import subprocess
import tempfile
import unittest

import numpy

from pnet import convert, scans

PNETC = os.environ["PNETC"]


def read_ply(path):
    """A binary PLY by its definition: {name: array} in the order of the file."""
    types = {"double": "<f8", "float": "<f4", "uchar": "u1", "ushort": "<u2", "int": "<i4"}
    with open(path, "rb") as file:
        head = []
        while not head or head[-1] != "end_header":
            head.append(file.readline().decode().rstrip("\n"))
        assert head[:2] == ["ply", "format binary_little_endian 1.0"], head
        count = int(head[2].split()[2])
        names = [line.split()[1:] for line in head[3:-1]]
        data = numpy.frombuffer(file.read(), [(name, types[kind]) for kind, name in names])
    assert len(data) == count
    return {name: data[name] for name in data.dtype.names}


class Scans(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def path(self, name):
        return os.path.join(self.folder, name)

    def convert(self, name, output, *options):
        """Exit code, standard output, standard error."""
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = convert.main([self.path(name), "-o", self.path(output), *options])
        return code, out.getvalue(), err.getvalue()

    def write(self, name, text):
        with open(self.path(name), "w") as file:
            file.write(text)


def scan_text(columns, rows, matrix, points, ending="\n"):
    """A scan of PTX. matrix: its four lines; points: lines."""
    axes = ["1 2 3", "1 0 0", "0 1 0", "0 0 1"]
    return ending.join([str(columns), str(rows), *axes, *matrix, *points, ""])


# A turn by 90 degrees about z, x to y, then a shift; the other one only shifts.
TURN = ["0 1 0 0", "-1 0 0 0", "0 0 1 0", "154000.125 463000.25 12.5 1"]
SHIFT = ["1 0 0 0", "0 1 0 0", "0 0 1 0", "0 0 0.0000001 1"]
FIRST = ["1.5 2 3 0.5 255 0 7", "0 0 0 0.5 0 0 0", "-1 0 0.001 0.25 1 2 3", "4 5 6 1 9 9 9", "0 0 0 0 0 0 0", "7 8 9 0.1 0 128 0"]


class Ptx(Scans):
    def test_one(self):
        for ending in "\n", "\r\n":
            self.write("a.ptx", scan_text(2, 3, TURN, FIRST, ending))
            code, out, err = self.convert("a.ptx", "a.ply")
            self.assertEqual((code, err), (0, ""))
            self.assertEqual(out, f"{self.path('a.ply')}: 4 points; left out, without a return: 2 points\n")
            got = read_ply(self.path("a.ply"))
            self.assertEqual(list(got), ["x", "y", "z", "intensity", "red", "green", "blue", "row", "column"])
            self.assertEqual([got[n].dtype.str for n in got], ["<f8"] * 4 + ["|u1"] * 3 + ["<i4"] * 2)
            # (x, y) turns to (-y, x)
            numpy.testing.assert_array_equal(got["x"], numpy.array([-2, 0, -5, -8]) + 154000.125)
            numpy.testing.assert_array_equal(got["y"], numpy.array([1.5, -1, 4, 7]) + 463000.25)
            numpy.testing.assert_array_equal(got["z"], numpy.array([3, 0.001, 6, 9]) + 12.5)
            numpy.testing.assert_array_equal(got["intensity"], [0.5, 0.25, 1, 0.1])
            numpy.testing.assert_array_equal(got["red"], [255, 1, 9, 0])
            numpy.testing.assert_array_equal(got["green"], [0, 2, 9, 128])
            # points follow each other down a column
            numpy.testing.assert_array_equal(got["row"], [0, 2, 0, 2])
            numpy.testing.assert_array_equal(got["column"], [0, 0, 1, 1])

    def test_several(self):
        plain = ["1 1 1 0.5", "2 2 2 0.25"]
        self.write("b.ptx", scan_text(2, 3, TURN, FIRST) + scan_text(1, 2, SHIFT, plain) + scan_text(0, 0, SHIFT, []))
        code, out, _ = self.convert("b.ptx", "b.npy")
        self.assertEqual(code, 0)
        self.assertIn("b.npy: 6 points; left out, without a return: 2 points; left out, fields: red, green, blue", out)
        got = numpy.load(self.path("b.npy"))
        self.assertEqual(got.dtype.names, ("x", "y", "z", "intensity", "row", "column", "scan"))
        numpy.testing.assert_array_equal(got["scan"], [0, 0, 0, 0, 1, 1])
        numpy.testing.assert_array_equal(got["z"], [15.5, 12.501, 18.5, 21.5, 1.0000001, 2.0000001])
        code, out, _ = self.convert("b.ptx", "each")
        self.assertEqual(code, 0)
        self.assertEqual(sorted(os.listdir(self.path("each"))), ["b_0.ply", "b_1.ply", "b_2.ply"])
        self.assertEqual(len(read_ply(self.path("each/b_0.ply"))["red"]), 4)
        second = read_ply(self.path("each/b_1.ply"))
        numpy.testing.assert_array_equal(second["x"], [1, 2])
        self.assertNotIn("scan", second)
        self.assertEqual(len(read_ply(self.path("each/b_2.ply"))["x"]), 0)

    def test_pnetc_reads(self):
        """pnetc counts the same points, and refuses the PTX with the command that was just run."""
        self.write("a.ptx", scan_text(2, 3, TURN, FIRST))
        for name in "a.ply", "a.npy":
            self.assertEqual(self.convert("a.ptx", name, "-q")[:2], (0, ""))
            done = subprocess.run([PNETC, "info", "--json", self.path(name)], capture_output=True, text=True, check=True)
            info = json.loads(done.stdout)
            self.assertEqual(info["points"], 4)
            self.assertEqual([c["type"] for c in info["coordinates"]], ["float64"] * 3)
            self.assertEqual(info["coordinates"][0]["from"], 153992.125)
            self.assertEqual([f["name"] for f in info["fields"]], ["intensity", "red", "green", "blue", "row", "column"])
        done = subprocess.run([PNETC, "info", self.path("a.ptx")], capture_output=True, text=True)
        self.assertEqual(done.returncode, 4)
        self.assertIn("python -m pnet.convert IN.ptx -o OUT.ply", done.stderr)

    def test_refused(self):
        good = scan_text(2, 3, TURN, FIRST)
        cases = [
            (good[:good.index("7 8 9")], "lines 11 to 16: expected 6 points of 4 or 7 numbers, found 5 of 7"),
            (good.replace("4 5 6 1 9 9 9", "4 5 6 1 9"), "lines 11 to 16: "),
            (good.replace("4 5 6 1", "4 5 six 1"), "lines 11 to 16: "),
            (good + "1\n2\n3\n", "line 17: expected the head of a scan, 10 lines of numbers"),
            (good.replace("2\n3\n", "-2\n3\n", 1), "line 1: a scan of -2 columns and 3 rows"),
            (good.replace("2\n3\n", "2.5\n3\n", 1), "line 1: the head of a scan: "),
            (scan_text(1, 1, TURN, ["1 2 3 4 5"]), "lines 11 to 11: expected 1 points of 4 or 7 numbers, found 1 of 5"),
        ]
        for text, message in cases:
            self.write("bad.ptx", text)
            code, out, err = self.convert("bad.ptx", "bad.ply")
            self.assertEqual((code, out), (4, ""), message)
            self.assertIn(f"pnet.convert: {self.path('bad.ptx')}: {message}", err)
        self.write("a.ptx", good)
        for output, options, message in [
            ("a.las", [], "scans are written as .ply or .npy"), ("folder", ["--scans", "one"], "--scans one writes a cloud"),
            ("a.ply", ["--scans", "each"], "--scans each writes a file for each scan"),
        ]:
            code, _, err = self.convert("a.ptx", output, *options)
            self.assertEqual(code, 4)
            self.assertIn(message, err)
        self.assertEqual(sorted(os.listdir(self.folder)), ["a.ptx", "bad.ptx"])

    def test_kinds(self):
        """A cloud of numbers is no PTX, and no checkpoint is taken for a scan."""
        self.write("a.txt", "\n".join(["1 2 3"] * 20))
        self.write("short.ptx", "1\n1\n")
        self.assertEqual([scans.kind(self.path(n)) for n in ("a.txt", "short.ptx")], [None, None])


if __name__ == "__main__":
    unittest.main()
