"""Points against sums by the definitions, in float64, and against models."""

import unittest

import numpy
import pnet
import support


class Points(support.Case):
    def setUp(self):
        self.random = numpy.random.default_rng(11)
        self.xyz = self.floats(400, 3) * numpy.float32(0.5)
        self.sample = self.random.integers(0, 3, 400).astype(numpy.int32)
        self.points = pnet.Points(self.xyz, sample=self.sample, batches=3)

    def floats(self, *shape):
        return self.random.standard_normal(shape).astype(numpy.float32)

    def near(self, got, wanted, most=2e-6):
        self.assertEqual(got.shape, wanted.shape)
        self.assertLess(numpy.linalg.norm(got - wanted), most * max(numpy.linalg.norm(wanted), 1e-3))

    def test_levels(self):
        level = self.points.grid(0.25)
        coarse = level.grid(0.5)
        self.assertEqual((self.points.rows, self.points.batches, self.points.cell), (400, 3, 0))
        self.assertEqual((level.cell, coarse.cell), (0.25, 0.5))
        self.assertTrue(numpy.array_equal(self.points.positions(), self.xyz))
        self.assertTrue(numpy.array_equal(self.points.samples(), self.sample))
        self.assertTrue(numpy.array_equal(level.positions(), self.xyz[level.sources()]))
        self.assertTrue(numpy.array_equal(level.samples(), self.sample[level.sources()]))
        parents = self.points.parents(level)
        voxels = {}
        for row, (sample, at) in enumerate(zip(self.sample, numpy.floor(self.xyz / numpy.float32(0.25)))):
            voxels.setdefault((sample, *at), set()).add(parents[row])
        self.assertEqual(sorted(parent for group in voxels.values() for parent in group), list(range(level.rows)))
        self.assertTrue(numpy.array_equal(level.parents(coarse)[parents], self.points.parents(coarse)))
        same = level.grid(0.25)
        level.close()
        self.assertEqual(same.rows, len(voxels))

    def test_row_splits(self):
        splits = numpy.array([0, 100, 100, 400])
        self.assertEqual(list(pnet.Points(self.xyz, row_splits=splits).samples()), [0] * 100 + [2] * 300)

    def test_set(self):
        made = pnet.PointSet(self.points, radius=0.4)
        far = self.xyz[:, None].astype(float) - self.xyz[None]
        joined = (numpy.linalg.norm(far, axis=2) <= 0.4) & (self.sample[:, None] == self.sample[None])
        i, j, k = made.triplets()
        self.assertEqual(sorted(zip(i, j)), sorted(zip(*numpy.nonzero(joined))))
        cells = numpy.clip(numpy.floor((self.xyz[j] - self.xyz[i]) * (3 / 0.8) + 1.5), 0, 2).astype(int)
        self.assertTrue(numpy.array_equal(k, (cells[:, 0] * 3 + cells[:, 1]) * 3 + cells[:, 2]))
        x, w = self.floats(400, 5), self.floats(27, 5, 7)
        wanted = numpy.zeros((400, 7))
        numpy.add.at(wanted, i, numpy.einsum("na,nab->nb", x[j].astype(float), w[k].astype(float)))
        self.near(made.conv(x, w), wanted)
        level = self.points.grid(0.25)
        down, up = pnet.PointSet(level, self.points, 2, radius=0.2), pnet.PointSet(self.points, level, 2, radius=0.2)
        turned = sorted((int(b), int(a), int(c)) for a, b, c in zip(*down.triplets()))
        self.assertEqual(sorted(tuple(map(int, t)) for t in zip(*up.triplets())), turned)
        self.assertEqual(pnet.PointSet(level, degrade="voxel").taps, 27)
        self.assertEqual(pnet.PointSet(level, degrade=["centre", "kernel"]).rows_out, level.rows)
        self.assertEqual(pnet.PointSet(self.points, knn=4).triplets()[0].size, 1600)

    def test_as_model(self):
        text = """pnet 1
input cloud { xyz : position  f : feature[5] }
net n(p: cloud) {
  g = grid(p, 25cm * [1, 2])
  return p.f -> conv(6, radius=30cm, to=g[0]) -> pool(max, to=g[1]) -> upsample(to=level(p.f))
}
y = n(cloud)
"""
        rows = self.random.permutation(400)
        order = numpy.argsort(self.sample[rows], kind="stable")
        xyz, splits = self.xyz[rows][order], numpy.concatenate([[0], numpy.cumsum(numpy.bincount(self.sample, minlength=3))])
        x, w = self.floats(400, 5), self.floats(27, 5, 6)
        session = pnet.Model(text).session()
        session.init()
        session.set_weight("n.out.conv.weight", w)
        session.bind({"cloud": splits, "cloud.xyz": xyz, "cloud.f": x})
        session.forward()
        points = pnet.Points(xyz, row_splits=splits, cell=0.25)
        fine = points.grid(0.25)
        coarse = fine.grid(0.5)
        y = pnet.PointMap(coarse, fine, "max").forward(pnet.PointSet(fine, points, radius=0.3).conv(x, w))
        y = pnet.PointMap(points, coarse, "parent").forward(y)
        self.assertTrue(numpy.array_equal(y, session.result()))

    def test_maps(self):
        level = self.points.grid(0.25)
        parents, x = self.points.parents(level), self.floats(400, 3)
        count = numpy.bincount(parents)
        wanted = numpy.zeros((level.rows, 3))
        numpy.add.at(wanted, parents, x.astype(float))
        made = pnet.PointMap(level, self.points, "mean")
        self.near(made.forward(x), wanted / count[:, None])
        g = self.floats(level.rows, 3)
        self.near(made.backward(g), (g.astype(float) / count[:, None])[parents])
        largest = pnet.PointMap(level, self.points, "max")
        top, rows = largest.forward(x, argmax=True)
        self.assertTrue(numpy.array_equal(numpy.take_along_axis(x, rows, 0), top))
        back = largest.backward(g, rows)
        self.assertEqual(numpy.count_nonzero(back), g.size)
        with self.assertRaisesRegex(pnet.Error, "argmax"):
            made.forward(x, argmax=True)
        with self.assertRaisesRegex(pnet.Error, "argmax"):
            largest.backward(g)
        # what is linear in the place stays as it is, in the midst of cells that are there
        grid = numpy.stack(numpy.meshgrid(*[numpy.arange(6)] * 3, indexing="ij"), -1).reshape(-1, 3)
        centres = pnet.Points((grid.astype(numpy.float32) + 0.5)).grid(1)
        queries = (1 + 4 * self.random.random((50, 3))).astype(numpy.float32)
        found = pnet.PointMap(pnet.Points(queries), centres, "trilinear").forward(centres.positions())
        self.near(found, queries, 1e-5)

    def test_attend(self):
        qkv, gradient = self.floats(400, 96), self.floats(400, 32)
        buckets = pnet.Buckets(self.points, "hilbert", bucket=4096, cell=0.1)  # a scope a sample
        result, log_sum = buckets.attend(qkv, heads=2)
        q, k, v = qkv.astype(float).reshape(400, 3, 2, 16).transpose(1, 2, 0, 3)
        weights = numpy.exp(q @ k.transpose(0, 2, 1) / 4) * (self.sample[:, None] == self.sample)
        sums = weights.sum(2, keepdims=True)
        self.near(result, (weights / sums @ v).transpose(1, 0, 2).reshape(400, 32))
        self.near(log_sum, numpy.log2(sums[:, :, 0]).T)
        back = buckets.attend_backward(qkv, result, log_sum, gradient)
        wanted = (weights / sums).transpose(0, 2, 1) @ gradient.astype(float).reshape(400, 2, 16).transpose(1, 0, 2)
        self.near(back[:, 64:], wanted.transpose(1, 0, 2).reshape(400, 32), 1e-5)
        with self.assertRaisesRegex(pnet.Error, "heads is 0"):
            buckets.attend(qkv, heads=0)

    def test_losses(self):
        other = pnet.Points(self.floats(500, 3), sample=self.random.integers(0, 3, 500), batches=3)
        far = numpy.linalg.norm(self.xyz[:, None].astype(float) - other.positions()[None], axis=2)
        far[self.sample[:, None] != other.samples()[None]] = numpy.inf
        wanted = 0
        for s in range(3):
            wanted += far.min(1)[self.sample == s].mean() / 6 + far.min(0)[other.samples() == s].mean() / 6
        self.assertAlmostEqual(pnet.point_loss("chamfer", self.points, other, squares=False), wanted, 6)
        for kind in ("chamfer", "dcd", "hypercd", "infocd", "sinkhorn", "apml"):
            loss, x, y = pnet.point_loss(kind, self.points, other, gradients=True)
            self.assertEqual(loss, pnet.point_loss(kind, self.points, other))
            if kind != "sinkhorn":  # whose gradient is exact at convergence alone: the loss does not change where both move
                self.assertLess(abs((x.astype(float).sum(0) + y.astype(float).sum(0))).max(), 1e-5)
            self.assertGreater(abs(x).max(), 1e-5)
        with self.assertRaisesRegex(pnet.Error, "as many points"):
            pnet.point_loss("emd", self.points, other)
        self.assertEqual(pnet.point_loss("emd", self.points, self.points), 0)
        with self.assertRaisesRegex(pnet.Error, "rounds is 4294967301"):  # of which a struct of C would keep 5
            pnet.point_loss("emd", self.points, self.points, rounds=2 ** 32 + 5)
        with self.assertRaisesRegex(pnet.Error, "no option 'gamma'"):
            pnet.point_loss("dcd", self.points, other, gamma=1)
        with self.assertRaisesRegex(pnet.Error, "lambda 9"):
            pnet.point_loss("dcd", self.points, other, lambda_=9)

    def test_errors(self):
        wrong = self.xyz.copy()
        wrong[7, 1] = numpy.nan
        with self.assertRaisesRegex(pnet.Error, "row 7") as why:
            pnet.Points(wrong)
        self.assertEqual(why.exception.status, pnet.Status.BAD_DATA)
        with self.assertRaisesRegex(pnet.Error, "float64"):
            pnet.Points(self.xyz.astype(float))
        with self.assertRaisesRegex(pnet.Error, "do not nest"):
            self.points.grid(0.2).grid(0.3)
        with self.assertRaisesRegex(pnet.Error, "cell is '5cm', expected a number"):
            self.points.grid("5cm")
        with self.assertRaisesRegex(pnet.Error, "shape is 'round'"):
            pnet.PointSet(self.points, shape="round")
        with self.assertRaisesRegex(pnet.Error, "no voxels"):
            pnet.PointSet(self.points, radius=0.1).indices()
        self.points.close()
        with self.assertRaisesRegex(pnet.Error, "closed"):
            pnet.PointSet(self.points, radius=0.1)


if __name__ == "__main__":
    unittest.main()
