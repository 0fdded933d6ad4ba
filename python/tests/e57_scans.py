"""python -m pnet.convert on E57 files, which pye57 writes. tests/exchange/test_scans.sh runs this with a Python that has it."""

import math
import os
import subprocess
import unittest

import numpy
import pye57
from pye57 import libe57

from pnet import scans
from test_scans import PNETC, Scans, read_ply

TURN = math.radians(30)


def turned(xyz, translation):
    """About z by 30 degrees, without quaternions or matrices."""
    x, y, z = xyz.astype(float).T
    return numpy.stack([math.cos(TURN) * x - math.sin(TURN) * y, math.sin(TURN) * x + math.cos(TURN) * y, z], 1) + translation


def add_scan(file, fields, pose=None, limits=()):
    """Adds a scan node by node. fields: {name: (node of the prototype, values)}; pose: numbers in the order of the file."""
    image = file.image_file
    scan, prototype = libe57.StructureNode(image), libe57.StructureNode(image)
    scan.set("guid", libe57.StringNode(image, "{scan}"))
    for part, numbers in (pose or {}).items():
        if not scan.isDefined("pose"):
            scan.set("pose", libe57.StructureNode(image))
        node = libe57.StructureNode(image)
        scan["pose"].set(part, node)
        for name, value in numbers.items():
            node.set(name, libe57.FloatNode(image, value))
    if limits:
        scan.set("colorLimits", libe57.StructureNode(image))
        for name in "colorRed", "colorGreen", "colorBlue":
            for end, value in zip(("Minimum", "Maximum"), limits):
                scan["colorLimits"].set(name + end, libe57.IntegerNode(image, value))
    buffers, count = libe57.VectorSourceDestBuffer(), len(next(iter(fields.values()))[1])
    kept = [numpy.ascontiguousarray(values, float) for _, values in fields.values()]
    for (name, (node, _)), values in zip(fields.items(), kept):
        prototype.set(name, node)
        buffers.append(libe57.SourceDestBuffer(image, name, values, count, True, True))
    points = libe57.CompressedVectorNode(image, prototype, libe57.VectorNode(image, True))
    scan.set("points", points)
    file.data3d.append(scan)
    points.writer(buffers).write(count)


class E57(Scans):
    def test_scans(self):
        """Two posed scans, with intensities, colours, indices and invalid points."""
        random = numpy.random.default_rng(3)
        data, want = [], []
        rotation = numpy.array([math.cos(TURN / 2), 0, 0, math.sin(TURN / 2)])
        translations = [numpy.array([154000.125, 463000.5, -3.25]), numpy.array([1, 2, 3])]
        with pye57.E57(self.path("a.e57"), mode="w") as file:
            for count, translation in zip((40, 25), translations):
                xyz = random.normal(size=(count, 3)).astype(numpy.float32)
                one = {"cartesian" + "XYZ"[k]: xyz[:, k].astype(float) for k in range(3)}
                one["intensity"] = random.random(count).astype(numpy.float32)
                for name in "colorRed", "colorGreen", "colorBlue":
                    one[name] = random.integers(0, 256, count).astype(numpy.uint8)
                one["rowIndex"] = (numpy.arange(count) % 5).astype(numpy.uint16)
                one["columnIndex"] = (numpy.arange(count) // 5).astype(numpy.uint16)
                one["cartesianInvalidState"] = (numpy.arange(count) % 4 == 1).astype(numpy.int8) * 2
                file.write_scan_raw(one, rotation=rotation, translation=translation)
                valid = one["cartesianInvalidState"] == 0
                data.append({name: values[valid] for name, values in one.items()})
                want.append(turned(xyz[valid], translation))
        code, out, err = self.convert("a.e57", "a.ply")
        self.assertEqual((code, err), (0, ""))
        self.assertEqual(out, f"{self.path('a.ply')}: 49 points; left out, without a return: 16 points\n")
        got = read_ply(self.path("a.ply"))
        names = ["x", "y", "z", "intensity", "red", "green", "blue", "row", "column", "scan"]
        self.assertEqual(list(got), names)
        numpy.testing.assert_allclose(numpy.stack([got[n] for n in "xyz"], 1), numpy.concatenate(want), rtol=0, atol=1e-9)
        for name, field in zip(names[3:9], ("intensity", "colorRed", "colorGreen", "colorBlue", "rowIndex", "columnIndex")):
            numpy.testing.assert_array_equal(got[name], numpy.concatenate([d[field] for d in data]))
        numpy.testing.assert_array_equal(got["scan"], [0] * 30 + [1] * 19)
        self.assertEqual((got["x"].dtype, got["red"].dtype, got["intensity"].dtype), ("<f8", "u1", "<f4"))
        self.assertEqual(self.convert("a.e57", "each", "-q"), (0, "", ""))
        self.assertEqual(sorted(os.listdir(self.path("each"))), ["a_0.ply", "a_1.ply"])
        for i in range(2):
            part = read_ply(self.path(f"each/a_{i}.ply"))
            for name in names[:9]:
                numpy.testing.assert_array_equal(part[name], got[name][got["scan"] == i])

    def test_other_fields(self):
        """A pose in another order, colours of 16 bits and of other limits, ranges and angles, fields that are left out."""
        pose = {"translation": {"z": 3.0, "x": 1.0, "y": 2.0},
                "rotation": {"x": 0.0, "y": 0.0, "z": 2 * math.sin(TURN / 2), "w": 2 * math.cos(TURN / 2)}}
        xyz = numpy.array([[1, 2, 3], [4, 5, 6.25], [7, 8, 9]])
        colours = numpy.array([[0, 1023, 40000], [65535, 2, 3], [4, 5, 6]])
        angles = numpy.array([[2, 0, 0], [2, math.pi / 2, 0], [2, 0, math.pi / 2]])
        with pye57.E57(self.path("b.e57"), mode="w") as file:
            image = file.image_file
            fields = {"cartesian" + "XYZ"[k]: (libe57.FloatNode(image, 0.0), xyz[:, k]) for k in range(3)}
            for k, name in enumerate(("colorRed", "colorGreen", "colorBlue")):
                fields[name] = (libe57.IntegerNode(image, 0, 0, 65535), colours[:, k])
            fields["timeStamp"] = (libe57.FloatNode(image, 0.0), numpy.arange(3))
            add_scan(file, fields, pose)
            fields = {"spherical" + n: (libe57.FloatNode(image, 0.0), angles[:, k])
                      for k, n in enumerate(("Range", "Azimuth", "Elevation"))}
            for k, name in enumerate(("colorRed", "colorGreen", "colorBlue")):
                fields[name] = (libe57.IntegerNode(image, 0, 0, 65535), numpy.array([100, 140, 200]))
            add_scan(file, fields, limits=(100, 200))
            add_scan(file, {"cartesian" + n: (libe57.FloatNode(image, 0.0), numpy.zeros(0)) for n in "XYZ"})
        code, out, err = self.convert("b.e57", "b")
        self.assertEqual((code, err), (0, ""))
        self.assertIn("b_0.ply: 3 points; left out, fields: timeStamp\n", out)
        first, second, third = (read_ply(self.path(f"b/b_{i}.ply")) for i in range(3))
        numpy.testing.assert_allclose(numpy.stack([first[n] for n in "xyz"], 1), turned(xyz, [1, 2, 3]), rtol=0, atol=1e-12)
        numpy.testing.assert_array_equal(numpy.stack([first[n] for n in ("red", "green", "blue")], 1), colours)
        self.assertEqual(first["red"].dtype, "<u2")
        numpy.testing.assert_allclose(
            numpy.stack([second[n] for n in "xyz"], 1), [[2, 0, 0], [0, 2, 0], [0, 0, 2]], rtol=0, atol=1e-12)
        numpy.testing.assert_array_equal(second["red"], [0, 102, 255])
        self.assertEqual(len(third["x"]), 0)

    def test_normals(self):
        """Normals are turned with the scan, under any prefix; fields of another extension that are called so are left out."""
        random = numpy.random.default_rng(5)
        xyz, normals = random.normal(size=(2, 20, 3))
        normals /= numpy.linalg.norm(normals, axis=1, keepdims=True)
        pose = {"rotation": {"w": math.cos(TURN / 2), "x": 0.0, "y": 0.0, "z": math.sin(TURN / 2)},
                "translation": {"x": 1.0, "y": 2.0, "z": 3.0}}
        for prefix, uri in ("nor", scans.NORMALS_URI), ("n", scans.NORMALS_URI), ("nor", "http://example.org/other"):
            with pye57.E57(self.path("n.e57"), mode="w") as file:
                image = file.image_file
                image.extensionsAdd(prefix, uri)
                fields = {"cartesian" + "XYZ"[k]: (libe57.FloatNode(image, 0.0), xyz[:, k]) for k in range(3)}
                for k in range(3):
                    fields[f"{prefix}:normal{'XYZ'[k]}"] = (libe57.FloatNode(image, 0.0), normals[:, k])
                add_scan(file, fields, pose)
            code, out, err = self.convert("n.e57", "n.ply")
            self.assertEqual((code, err), (0, ""))
            got = read_ply(self.path("n.ply"))
            if uri != scans.NORMALS_URI:
                self.assertEqual(list(got), ["x", "y", "z"])
                self.assertIn("left out, fields: nor:normalX, nor:normalY, nor:normalZ\n", out)
                continue
            self.assertEqual((list(got), out), (["x", "y", "z", "nx", "ny", "nz"], f"{self.path('n.ply')}: 20 points\n"))
            self.assertEqual(got["nx"].dtype, "<f4")
            numpy.testing.assert_allclose(
                numpy.stack([got[n] for n in ("nx", "ny", "nz")], 1), turned(normals, [0, 0, 0]), rtol=0, atol=1e-6)

    def test_refused(self):
        with open(self.path("a.e57"), "wb") as file:
            file.write(b"ASTM-E57" + bytes(100))
        code, out, err = self.convert("a.e57", "a.ply")
        self.assertEqual((code, out), (4, ""))
        self.assertIn(f"pnet.convert: {self.path('a.e57')}: ", err)
        done = subprocess.run([PNETC, "info", self.path("a.e57")], capture_output=True, text=True)
        self.assertIn("python -m pnet.convert IN.e57 -o OUT.ply", done.stderr)
        with pye57.E57(self.path("none.e57"), mode="w"):
            pass
        code, _, err = self.convert("none.e57", "a.ply")
        self.assertEqual(code, 4)
        self.assertIn("holds no scan", err)
        self.assertFalse(os.path.exists(self.path("a.ply")))


if __name__ == "__main__":
    unittest.main()
