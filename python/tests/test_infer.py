"""Inference: the bits of pnetc infer, whatever way the arrays lie."""

import unittest

import numpy

import pnet
import support
from pnet import _arrays


class Array:
    """Has __array__ alone."""

    def __init__(self, array):
        self.array = array

    def __array__(self, dtype=None, copy=None):
        return self.array


class Capsule:
    """Has DLPack alone."""

    def __init__(self, array):
        self.array = array

    def __dlpack__(self, **options):
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


class Rooms(support.RoomCase):
    def test_same_bits_as_pnetc(self):
        room = support.read_room(self.rooms / "test" / "000009.ply")
        records = numpy.hstack([room["cloud.xyz"], room["cloud.rgb"]])
        records.tofile(self.folder / "room.bin")
        results = []
        for mode in "native", "voxel":
            weights, scores = self.folder / f"{mode}.safetensors", self.folder / f"{mode}.npy"
            support.session("eval", mode=mode).save(weights)
            support.run(support.PNETC, "infer", self.model, "--weights", weights, "--input", self.folder / "room.bin",
                        "--columns", "x,y,z,r,g,b", "--mode", mode, "-o", scores)
            with pnet.Model(self.model, mode=mode, trained=weights) as model, model.session() as session:
                session.load(weights)
                results.append(support.result(session, {"cloud.xyz": records[:, :3], "cloud.rgb": records[:, 3:]}))
            self.same(results[-1], numpy.load(scores))
        self.assertGreater(numpy.abs(results[0] - results[1]).max(), 0)

    def test_a_value_inside_of_the_net(self):
        room = support.read_room(self.rooms / "test" / "000009.ply")
        whole = pnet.Model(support.SCENE)
        self.assertEqual(whole.result, pnet.Result("scene.out.linear", support.CLASSES, support.CLASSES, "points", "cloud"))
        inside = pnet.Model(support.SCENE, value="scene.a.unit.out.relu")
        session = inside.session()
        session.init()
        features = support.result(session, room)
        self.assertEqual((features.shape[1], inside.result.width, inside.result.classes), (16, 16, 0))
        self.assertGreaterEqual(features.min(), 0)


class Arrays(support.Case):
    def setUp(self):
        self.session = support.session()
        self.batch = support.cloud()
        self.wanted = support.result(self.session, self.batch)

    def gives_the_same(self, xyz, rgb, **others):
        self.same(support.result(self.session, {"cloud.xyz": xyz, "cloud.rgb": rgb, **others}), self.wanted)

    def test_ways_to_lie(self):
        xyz, rgb = self.batch["cloud.xyz"], self.batch["cloud.rgb"]
        both = numpy.hstack([xyz, rgb])
        packed = numpy.zeros(len(xyz), [("flag", "u1"), ("xyz", "f4", 3), ("rgb", "f4", 3)])
        packed["xyz"], packed["rgb"] = xyz, rgb
        fixed = xyz.copy()
        fixed.flags.writeable = False
        self.gives_the_same(both[:, :3], both[:, 3:])
        self.gives_the_same(numpy.asfortranarray(xyz), rgb)
        self.gives_the_same(xyz[::-1].copy()[::-1], rgb)
        self.gives_the_same(packed["xyz"], packed["rgb"])
        self.gives_the_same(fixed, rgb)
        self.gives_the_same(Array(xyz), Capsule(rgb))
        for splits in [0, len(xyz)], numpy.array([0, len(xyz)], numpy.int32), (0, len(xyz)):
            self.gives_the_same(xyz, rgb, cloud=splits)

    def test_rows_are_not_copied(self):
        both = numpy.zeros((10, 7), numpy.float32)
        record = numpy.zeros(10, [("xyz", "f4", 3), ("label", "i4")])
        for part, stride in (both[:, 1:4], 7), (both[::2, 1:4], 14), (both[:, 6], 7), (both[:1, 2:4], 0), (record["xyz"], 4), \
                (record["label"], 4), (numpy.zeros((5, 4, 4), numpy.float32), 16):
            taken = _arrays.rows("x", part)
            self.assertTrue(numpy.shares_memory(part, taken))
            self.assertEqual(_arrays.describe(taken).stride, stride)
        odd = numpy.zeros(10, {"names": ["xyz"], "formats": [("f4", 3)], "offsets": [1], "itemsize": 16})
        for part in odd["xyz"], both.T, both[:, ::2], both[::-1], numpy.broadcast_to(both[0], (3, 7)):
            taken = _arrays.rows("x", part)
            self.assertFalse(numpy.shares_memory(part, taken))
            self.assertTrue((taken == part).all())
        self.assertTrue(numpy.shares_memory(both, _arrays.rows("x", Capsule(both))))

    def test_samples_are_apart(self):
        other = support.cloud(500, seed=2)
        joined = {name: numpy.concatenate([value, other[name]]) for name, value in self.batch.items()}
        joined["cloud"] = numpy.cumsum([0, len(self.wanted), 500])
        rows = support.result(self.session, joined)
        self.same(rows[:-500], self.wanted)
        self.same(rows[-500:], support.result(self.session, other))

    def test_no_rows(self):
        none = numpy.zeros((0, 3), numpy.float32)
        self.assertEqual(support.result(self.session, {"cloud.xyz": none, "cloud.rgb": none}).shape, (0, support.CLASSES))


if __name__ == "__main__":
    unittest.main()
