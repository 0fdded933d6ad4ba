"""Sets of voxels against dense sums by the definition, in float64."""

import unittest

import numpy
import pnet
import support


def sites(random, extent, batches, share):
    """Some of all voxels, in any order: int32 [rows, 4]."""
    every = numpy.stack(numpy.meshgrid(*(numpy.arange(n) for n in (batches, *extent)), indexing="ij"), -1).reshape(-1, 4)
    chosen = every[random.random(len(every)) < share].astype(numpy.int32)
    random.shuffle(chosen)
    return chosen


def joined(inputs, outputs, kernel, stride, padding, dilation, transposed=False):
    """All (i, j, k) with y s + t d - p = x, by looking at each pair."""
    found = []
    for i, y in enumerate(outputs):
        for j, x in enumerate(inputs):
            a, b = (x, y) if transposed else (y, x)
            if a[0] != b[0]:
                continue
            far = b[1:] + padding - a[1:] * stride
            tap = far // dilation
            if numpy.all(far % dilation == 0) and numpy.all((tap >= 0) & (tap < kernel)):
                found.append((i, j, int((tap[0] * kernel[1] + tap[1]) * kernel[2] + tap[2])))
    return sorted(found, key=lambda t: (t[0], t[2], t[1]))


def dense(triplets, features, weights, rows):
    result = numpy.zeros((rows, weights.shape[2]))
    for i, j, k in triplets:
        result[i] += features[j].astype(float) @ weights[k].astype(float)
    return result


class Voxels(support.Case):
    def setUp(self):
        self.random = numpy.random.default_rng(5)

    def floats(self, *shape):
        return self.random.standard_normal(shape).astype(numpy.float32)

    def check(self, made, triplets):
        self.assertEqual([tuple(int(v) for v in t) for t in zip(*made.triplets())], triplets)
        x, w, g = self.floats(made.rows_in, 5), self.floats(made.taps, 5, 7), self.floats(made.rows_out, 7)
        self.near(made.conv(x, w), dense(triplets, x, w, made.rows_out))
        turned = [(j, i, k) for i, j, k in triplets]
        self.near(made.conv_grad_input(g, w), dense(turned, g, w.transpose(0, 2, 1), made.rows_in))
        by_tap = numpy.zeros((made.taps, 5, 7))
        for i, j, k in triplets:
            by_tap[k] += numpy.outer(x[j].astype(float), g[i].astype(float))
        self.near(made.conv_grad_weight(x, g), by_tap)

    def near(self, got, wanted):
        self.assertEqual(got.shape, wanted.shape)
        self.assertLess(numpy.linalg.norm(got - wanted), 1e-6 * max(numpy.linalg.norm(wanted), 1e-3))

    def test_submanifold(self):
        at = sites(self.random, (5, 6, 4), 2, 0.4)
        made = pnet.VoxelSet(at, (5, 6, 4), (3, 1, 5), batches=2)
        kernel = numpy.array([3, 1, 5])
        self.assertTrue(numpy.array_equal(made.indices(), at))
        self.check(made, joined(at, at, kernel, 1, (kernel - 1) // 2, 1))

    def test_strided_and_back(self):
        at = sites(self.random, (6, 5, 7), 2, 0.3)
        made = pnet.VoxelSet(at, (6, 5, 7), (3, 2, 3), kind="strided", stride=(2, 1, 2), padding=(1, 0, 1), batches=2)
        out = made.indices()
        self.assertEqual(made.extent, (3, 4, 4))
        self.assertEqual(sorted(map(tuple, out)), [tuple(v) for v in out])
        triplets = joined(at, out, numpy.array([3, 2, 3]), numpy.array([2, 1, 2]), numpy.array([1, 0, 1]), 1)
        self.assertEqual({i for i, _, _ in triplets}, set(range(len(out))))
        self.check(made, triplets)
        back = made.inverse()
        made.close()
        self.check(back, sorted(((j, i, k) for i, j, k in triplets), key=lambda t: (t[0], t[2], t[1])))

    def test_bias_and_groups(self):
        at = sites(self.random, (4, 4, 4), 1, 0.5)
        made = pnet.VoxelSet(at, (4, 4, 4), 3)
        x, w, bias = self.floats(made.rows_in, 6), self.floats(27, 3, 8), self.floats(8)
        whole = numpy.zeros((27, 6, 8), numpy.float32)
        whole[:, :3, :4], whole[:, 3:, 4:] = w[:, :, :4], w[:, :, 4:]
        triplets = [tuple(int(v) for v in t) for t in zip(*made.triplets())]
        self.near(made.conv(x, w, bias, groups=2), dense(triplets, x, whole, made.rows_out) + bias)

    def test_triplets(self):
        i, j, k = (numpy.array(v, numpy.int32) for v in ([1, 0, 1], [0, 2, 2], [1, 0, 0]))
        self.check(pnet.VoxelSet.from_triplets(i, j, k, 2, 3, 2), [(0, 2, 0), (1, 2, 0), (1, 0, 1)])

    def test_errors(self):
        twice = numpy.array([[0, 1, 1, 1], [0, 2, 1, 1], [0, 1, 1, 1]], numpy.int32)
        with self.assertRaisesRegex(pnet.Error, "row") as why:
            pnet.VoxelSet(twice, (4, 4, 4))
        self.assertEqual(why.exception.status, pnet.Status.BAD_DATA)
        made = pnet.VoxelSet(twice[:2], (4, 4, 4))
        for wrong in (self.floats(3, 4), self.floats(2, 4).astype(float), self.floats(2)):
            with self.assertRaises(pnet.Error) as why:
                made.conv(wrong, self.floats(27, 4, 4))
            self.assertEqual(why.exception.status, pnet.Status.USAGE)
        with self.assertRaisesRegex(pnet.Error, "expected"):
            made.conv(self.floats(2, 4), self.floats(9, 4, 4))
        with self.assertRaisesRegex(pnet.Error, "axes"):
            pnet.VoxelSet(twice[:2], (4, 4))
        made.close()
        with self.assertRaisesRegex(pnet.Error, "closed"):
            made.triplets()


if __name__ == "__main__":
    unittest.main()
