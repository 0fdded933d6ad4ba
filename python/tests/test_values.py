"""Numbers of arguments: each is checked, 0 is not taken for one that is not given, and messages name the argument."""

import functools
import inspect
import math
import unittest

import numpy

import pnet
import support
from wrong_values import (
    ANY_NUMBER, AXES, AXES_FROM_0, COUNT, FLAG, FROM_0, NUMBER, OTHER, arguments_of, check_arguments,
)

XYZ = numpy.random.default_rng(1).random((300, 3), numpy.float32)
SITES = numpy.array([[0, 1, 2, 3], [0, 2, 2, 2]], numpy.int32)


@functools.lru_cache
def geometry():
    points = pnet.Points(XYZ)
    return points, points.grid(0.1)


@functools.lru_cache
def trained():
    session = support.session("train", {"name": "sgd"})
    session.bind(support.cloud(300))
    return session


def step(**given):
    trained().gradients()
    return trained().step(**{"learning_rate": 0.1, **given})


def backward(**given):
    trained().forward_training()
    return trained().backward({}, **{"scale": 1.0, **given})


def optimizer(**given):
    return support.session("train", {"name": "sgd", **given})


def loss(**given):
    return pnet.point_loss("chamfer", *geometry(), **given)


def triplets(**given):
    column = numpy.zeros(0, numpy.int32)
    return pnet.VoxelSet.from_triplets(column, column, column, **{"rows_out": 1, "rows_in": 1, "taps": 1, **given})


def conv(name, **given):
    made = pnet.VoxelSet(SITES, [4, 4, 4], 1)
    x, w = numpy.ones((2, 4), numpy.float32), numpy.ones((1, 4, 4), numpy.float32)
    second = w if name != "conv_grad_weight" else x
    return getattr(made, name)(x, second, **given)


def attend(**given):
    return pnet.Buckets(geometry()[1], bucket=16).attend(numpy.ones((geometry()[1].rows, 48), numpy.float32), **given)


def attend_backward(**given):
    rows = geometry()[1].rows
    wide, one = numpy.ones((rows, 48), numpy.float32), numpy.ones((rows, 16), numpy.float32)
    return pnet.Buckets(geometry()[1], bucket=16).attend_backward(wide, one, numpy.ones((rows, 1), numpy.float32), one, **given)


# Of each public call: itself with what it needs, the callable whose arguments these are, and their kinds.
CALLS = {
    "VoxelSet": (lambda **given: pnet.VoxelSet(SITES, **{"extent": [4, 4, 4], **given}), pnet.VoxelSet, {
        "indices": OTHER, "extent": AXES, "kernel": AXES, "kind": OTHER, "stride": AXES, "padding": AXES_FROM_0, "dilation": AXES,
        "output_padding": AXES_FROM_0, "batches": COUNT}),
    "VoxelSet.from_triplets": (triplets, pnet.VoxelSet.from_triplets, {
        "i": OTHER, "j": OTHER, "k": OTHER, "rows_out": FROM_0, "rows_in": FROM_0, "taps": COUNT}),
    **{f"VoxelSet.{name}": (functools.partial(conv, name), getattr(pnet.VoxelSet, name), {
        **dict.fromkeys(arguments_of(getattr(pnet.VoxelSet, name)), OTHER), "groups": COUNT})
       for name in ("conv", "conv_grad_input", "conv_grad_weight")},
    "Points": (lambda **given: pnet.Points(XYZ, **given), pnet.Points, {
        "positions": OTHER, "row_splits": OTHER, "sample": OTHER, "batches": COUNT, "cell": NUMBER}),
    "Points.grid": (lambda **given: geometry()[0].grid(**{"cell": 0.1, **given}), pnet.Points.grid, {"cell": NUMBER}),
    "PointSet": (lambda **given: pnet.PointSet(geometry()[1], **given), pnet.PointSet, {
        "out": OTHER, "source": OTHER, "kernel": COUNT, "radius": NUMBER, "knn": COUNT, "shape": OTHER, "degrade": OTHER}),
    "PointMap": (lambda **given: pnet.PointMap(*geometry(), "inverse_distance", **given), pnet.PointMap, {
        "out": OTHER, "source": OTHER, "kind": OTHER, "k": COUNT, "outside": OTHER}),
    "Buckets": (lambda **given: pnet.Buckets(geometry()[1], "hilbert", **given), pnet.Buckets, {
        "points": OTHER, "order": OTHER, "bucket": COUNT, "scope": COUNT, "shift": FROM_0, "stride": COUNT, "wrap": FLAG,
        "cell": NUMBER}),
    "Buckets.attend": (attend, pnet.Buckets.attend, {"qkv": OTHER, "heads": COUNT, "scale": NUMBER}),
    "Buckets.attend_backward": (attend_backward, pnet.Buckets.attend_backward, {
        **dict.fromkeys(arguments_of(pnet.Buckets.attend_backward), OTHER), "scale": NUMBER}),
    "point_loss": (loss, pnet.point_loss, {"kind": OTHER, "x": OTHER, "y": OTHER, "gradients": OTHER, "options": OTHER}),
    "Model": (lambda **given: pnet.Model(support.SCENE, purpose="train", **given), pnet.Model, {
        **dict.fromkeys(arguments_of(pnet.Model), OTHER), "input_gradients": FLAG}),
    "Model.peak": (lambda **given: trained().model.peak(**{"points": 100, **given}), pnet.Model.peak, {
        "points": FROM_0, "device": OTHER, "precision": OTHER}),
    "Session": (lambda **given: trained().model.session(**given), pnet.Session, {
        **dict.fromkeys(arguments_of(pnet.Session), OTHER), "seed": FROM_0, "memory_limit": FROM_0, "stream": FROM_0}),
    "Session.gradients": (lambda **given: trained().gradients(**given), pnet.Session.gradients, {
        "scale": ANY_NUMBER, "accumulate": FLAG}),
    "Session.backward": (backward, pnet.Session.backward, {"gradients": OTHER, "scale": ANY_NUMBER, "accumulate": FLAG}),
    "Session.step": (step, pnet.Session.step, {
        "learning_rate": ANY_NUMBER, "clip": ANY_NUMBER, "loss_scale": NUMBER, "wait": OTHER}),
}
# Options that no signature has.
OPTIONS = {
    "optimizer": (optimizer, {"momentum": ANY_NUMBER, "nesterov": FLAG, "weight_decay": ANY_NUMBER, "decay_all": FLAG,
                              "beta1": ANY_NUMBER, "beta2": ANY_NUMBER, "eps": ANY_NUMBER}),
    "point_loss": (loss, {"squares": FLAG, "at_least_one": FLAG, "sums": FLAG, "rounds": FROM_0, "most": FROM_0,
                          "entries": FROM_0, "lambda_": ANY_NUMBER, "tau": ANY_NUMBER, "eps": ANY_NUMBER, "blur": ANY_NUMBER,
                          "scaling": ANY_NUMBER, "p": ANY_NUMBER}),
}


class Values(support.Case):
    def test_arguments(self):
        for name, (call, of, kinds) in CALLS.items():
            self.assertEqual(sorted(kinds), sorted(arguments_of(of)), name)
            check_arguments(self, name, call, kinds, error=pnet.Error)

    def test_options(self):
        for name, (call, kinds) in OPTIONS.items():
            check_arguments(self, name, call, kinds, error=pnet.Error)

    def test_all_calls(self):
        """CALLS has whatever takes a number by default."""
        for name in pnet.__all__:
            of = getattr(pnet, name)
            members = {}
            if isinstance(of, type) and not issubclass(of, (tuple, Exception, int)):
                members = {f"{name}.{member}": value for member, value in vars(of).items() if not member.startswith("_")}
            for where, call in {name: of, **members}.items():
                if where == name and not (inspect.isfunction(of) or members):
                    continue
                call = getattr(call, "__func__", call)
                if not callable(call) or where in CALLS or where == "Model.session":  # whose arguments are those of Session
                    continue
                numbers = [p.name for p in inspect.signature(call).parameters.values() if type(p.default) in (int, float)]
                self.assertEqual(numbers, [], where)

    def test_class_weights(self):
        for wrong in (math.nan, "1", None, True):
            with self.assertRaises((ValueError, TypeError)) as caught:
                pnet.Model(support.SCENE, purpose="train", class_weights=[1.0] * 11 + [wrong])
            self.assertIn("class_weights", str(caught.exception))

    def test_numbers_of_numpy(self):
        """They are numbers as others are."""
        one = pnet.VoxelSet(SITES, numpy.array([4, 4, 4]), numpy.int8(3), stride=numpy.int64(2), kind="strided",
                            padding=numpy.array(1), batches=numpy.uint8(1))
        self.assertEqual((one.taps, one.extent), (27, (2, 2, 2)))
        points, level = geometry()
        self.assertEqual(points.grid(numpy.float64(0.1)).rows, level.rows)
        self.assertEqual(pnet.PointSet(level, None, numpy.int32(3), radius=numpy.float64(0.2)).taps, 27)
        x = numpy.random.default_rng(2).random((level.rows, 48), numpy.float32)
        made = pnet.Buckets(level, bucket=numpy.int64(16), wrap=numpy.False_)
        self.same(made.attend(x, numpy.int64(2), numpy.float32(0.5))[0], made.attend(x, 2, 0.5)[0])
        self.assertGreater(abs(made.attend(x, 2, 0.5)[0] - made.attend(x, 2)[0]).max(), 0)


if __name__ == "__main__":
    unittest.main()
