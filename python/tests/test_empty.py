"""No rows, and samples without any: whatever computes, and networks of models/. TABLE has all public names."""

import itertools
import unittest

import numpy

import pnet
import support

WEIGHTS = numpy.random.default_rng(3)


def floats(*shape):
    return WEIGHTS.standard_normal(shape).astype(numpy.float32)


def convolved(made):
    """Results and gradients of a set of any rows."""
    x, w = floats(made.rows_in, 4), floats(made.taps, 4, 6)
    y = made.conv(x, w, numpy.ones(6, numpy.float32))
    return [(y, (made.rows_out, 6)), (made.conv_grad_input(y, w), (made.rows_in, 4)),
            (made.conv_grad_weight(x, y), (made.taps, 4, 6))]


def voxels(rows, samples):
    at = numpy.array(list(itertools.product([0], range(3), range(3), range(3))), numpy.int32)[:rows]
    found = []
    for kind, stride in (("submanifold", 1), ("strided", 2), ("transposed", 2)):
        made = pnet.VoxelSet(at, [4, 4, 4], 3, kind=kind, stride=stride, batches=samples)
        found += convolved(made) + convolved(made.inverse())
        found.append((made.indices(), (made.rows_out, 4)))
    return found


def points(rows, samples):
    xyz = numpy.random.default_rng(1).random((rows, 3), numpy.float32)
    whole = pnet.Points(xyz, row_splits=numpy.array([0] + [rows] * samples))
    level = whole.grid(0.1)
    return whole, level, level.grid(0.2)


def levels(rows, samples):
    whole, level, coarse = points(rows, samples)
    return [(level.positions(), (level.rows, 3)), (level.parents(coarse), (level.rows,)), (whole.samples(), (rows,)),
            (level.sources(), (level.rows,))]


def point_sets(rows, samples):
    _, level, coarse = points(rows, samples)
    found = []
    for out, given, named in ((level, level, {}), (level, level, {"knn": 4}), (level, level, {"degrade": "voxel"}),
                              (coarse, level, {"kernel": 2}), (level, coarse, {"kernel": 2})):
        found += convolved(pnet.PointSet(out, given, **named))
    return found


def maps(rows, samples):
    whole, level, coarse = points(rows, samples)
    found = []
    for kind in ("mean", "max", "sum", "parent", "inverse_distance", "trilinear", "nearest"):
        pools, reads = kind in ("mean", "max", "sum"), kind in ("inverse_distance", "trilinear", "nearest")
        out, source = (coarse, level) if pools else (whole if reads else level, coarse)
        made = pnet.PointMap(out, source, kind)
        x = floats(source.rows, 4)
        y, rows_of = made.forward(x, argmax=True) if kind == "max" else (made.forward(x), None)
        found += [(y, (out.rows, 4)), (made.backward(y, rows_of), (source.rows, 4))]
    return found


def buckets(rows, samples):
    _, level, _ = points(rows, samples)
    found = []
    for order in ("z", "z_trans", "hilbert", "hilbert_trans", "xor_div", "xor_mod", "z_mod"):
        made = pnet.Buckets(level, order, bucket=16)
        x = floats(level.rows, 48)
        y, log_sum = made.attend(x, 2)
        found += [(y, (level.rows, 16)), (log_sum, (level.rows, 2)), (made.attend_backward(x, y, log_sum, y), (level.rows, 48))]
    return found


def losses(rows, samples):
    x, y = points(rows, samples)[0], points(rows, samples)[0]
    found = []
    for kind in ("chamfer", "dcd", "hypercd", "infocd", "emd", "sinkhorn", "apml"):
        loss, *by = pnet.point_loss(kind, x, y, gradients=True)
        found += [(numpy.float32(loss), ()), *((g, (rows, 3)) for g in by)]
    return found


def batch_of(model, rows, samples):
    """A batch of zeros whose first sample has all the rows."""
    batch = {}
    for given in model.inputs:
        batch[given.name] = numpy.array([0] + [rows] * samples) if given.fields else numpy.tile(
            numpy.eye(4, dtype=numpy.float32), (samples, 1, 1))
        for field in given.fields:
            shape = (samples if field.per_cloud else rows, field.width)
            batch[f"{given.name}.{field.name}"] = (
                numpy.zeros(shape, numpy.int32) if field.kind == "class" else abs(floats(*shape)))
    return batch


def session(rows, samples):
    made = support.session("train")
    before = {w.name: made.weight(w.name) for w in made.model.weights if not w.trained}
    made.bind(batch_of(made.model, rows, samples))
    made.gradients()
    found = [(made.gradient(w.name), w.shape) for w in made.model.weights if w.trained]
    if not rows:
        for name, value in before.items():
            assert numpy.array_equal(made.weight(name), value), name
        assert made.objective("ce") == 0
    made = support.session()
    made.bind({name: value for name, value in batch_of(made.model, rows, samples).items()})
    made.forward()
    return [*found, (made.result(), (rows, support.CLASSES))]


TABLE = {
    "VoxelSet": voxels, "Points": levels, "PointSet": point_sets, "PointMap": maps, "Buckets": buckets, "point_loss": losses,
    "Model": session, "Session": session,
    **dict.fromkeys(("Diagnostic", "Error", "Field", "Input", "Memory", "Objective", "Output", "Result", "Status", "Step",
                     "Weight")),
}


class Empty(support.Case):
    def test_every_name(self):
        self.assertEqual(sorted(TABLE), sorted(pnet.__all__))

    def test_no_rows(self):
        """Results have their shapes, and are finite; without rows those that have elements are 0."""
        for name, use in TABLE.items():
            for rows, samples in ((0, 1), (0, 2), (1, 1), (1, 2), (20, 2)) if use else ():
                with self.subTest(name=name, rows=rows, samples=samples):
                    for value, shape in use(rows, samples):
                        self.assertEqual(value.shape, shape)
                        self.assertTrue(numpy.isfinite(value).all())
                        if not rows:
                            self.assertEqual(numpy.count_nonzero(value), 0)

    def test_models(self):
        """Networks of models/ of each task train and infer."""
        for path in (support.ROOT / "models" / f"{name}.pnet" for name in ("rooms", "shapes", "fcgf", "pcn")):
            train, infer = (pnet.Model(path, purpose=purpose) for purpose in ("train", "infer"))
            made, runs = train.session(seed=1), infer.session(seed=1)
            made.init()
            for rows, samples in ((0, 1), (30, 2)):
                with self.subTest(model=path.name, rows=rows, samples=samples):
                    made.bind(batch_of(train, rows, samples))
                    made.gradients()
                    for objective in train.objectives:
                        if not objective.metric:
                            self.assertTrue(numpy.isfinite(made.objective(objective.name)))
                    for weight in train.weights:
                        self.assertTrue(numpy.isfinite(made.weight(weight.name)).all(), weight.name)
                        if weight.trained:
                            self.assertTrue(numpy.isfinite(made.gradient(weight.name)).all(), weight.name)
                    runs.copy_weights(made)
                    runs.bind(batch_of(infer, rows, samples))
                    runs.forward()
                    self.assertTrue(numpy.isfinite(runs.result()).all())


if __name__ == "__main__":
    unittest.main()
