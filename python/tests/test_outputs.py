"""Outputs, and backward from gradients of one's own: the network once more in NumPy, and the model's own loss."""

import unittest

import numpy

import pnet
import support

NET = """\
pnet 1
input cloud {
  xyz    : position
  f      : feature[4]
  target : feature[3]
}
net n(p: cloud) {
  h = p.f -> linear(5) -> sigmoid
  return h -> linear(3)
}
y = n(cloud)
"""
LOSS = "loss m = mse(y, cloud.target)\n"
ROWS = 50


def batch():
    draw = numpy.random.default_rng(2)
    return {name: draw.random((ROWS, width), numpy.float32)
            for name, width in (("cloud.xyz", 3), ("cloud.f", 4), ("cloud.target", 3))}


def session(text, optimizer=None, **options):
    made = pnet.Model(text, purpose="train", input_gradients=True, **options).session(seed=3, optimizer=optimizer)
    made.init()
    made.bind(batch())
    return made


class Outputs(support.Case):
    def setUp(self):
        self.session = session(NET, outputs=["y", "n.h"])

    def test_gradients(self):
        """Of a loss of both outputs, as the chain rule has it."""
        given = {name: array.astype(numpy.float64) for name, array in batch().items()}
        w = [self.session.weight(f"n.{at}.linear.weight").astype(float) for at in ("h", "out")]
        b = [self.session.weight(f"n.{at}.linear.bias").astype(float) for at in ("h", "out")]
        h = 1 / (1 + numpy.exp(-(given["cloud.f"] @ w[0].T + b[0])))
        y = h @ w[1].T + b[1]
        self.session.forward_training()
        numpy.testing.assert_allclose(self.session.output("n.h"), h, atol=1e-5)
        numpy.testing.assert_allclose(self.session.output("y"), y, atol=1e-5)
        by_y, by_h = numpy.cos(y), h ** 3
        self.session.backward({"y": by_y.astype(numpy.float32), "n.h": by_h.astype(numpy.float32)})
        through = (by_h + by_y @ w[1]) * h * (1 - h)
        for name, wanted in {"n.out.linear.weight": by_y.T @ h, "n.out.linear.bias": by_y.sum(0),
                             "n.h.linear.weight": through.T @ given["cloud.f"], "n.h.linear.bias": through.sum(0)}.items():
            numpy.testing.assert_allclose(self.session.gradient(name), wanted, rtol=1e-4, atol=1e-4, err_msg=name)
        numpy.testing.assert_allclose(self.session.input_gradient("cloud.f"), through @ w[0], rtol=1e-4, atol=1e-5)
        once = self.session.gradient("n.h.linear.weight")
        self.session.forward_training()
        self.session.backward({"y": by_y.astype(numpy.float32), "n.h": by_h.astype(numpy.float32)}, accumulate=True)
        numpy.testing.assert_allclose(self.session.gradient("n.h.linear.weight"), 2 * once, rtol=1e-6)

    def test_own_loss(self):
        """The gradient of the model's own loss gives the model's own gradients, to the bit."""
        own = session(NET + LOSS)
        own.gradients()
        self.session.forward_training()
        miss = self.session.output("y") - batch()["cloud.target"]
        self.session.backward({"y": numpy.float32(1 / (ROWS * 3)) * (2 * miss)})
        for weight in own.model.weights:
            self.same(own.gradient(weight.name), self.session.gradient(weight.name))
        self.same(own.input_gradient("cloud.f"), self.session.input_gradient("cloud.f"))
        self.assertEqual(own.input_gradient("cloud.xyz").tolist(), [[0, 0, 0]] * ROWS)
        both = session(NET + LOSS, outputs=["y"])
        both.forward_training()
        self.assertAlmostEqual(both.objective("m"), float((miss.astype(float) ** 2).mean()), 6)
        both.backward({}, scale=1)
        self.same(own.gradient("n.h.linear.weight"), both.gradient("n.h.linear.weight"))

    def test_training(self):
        made = session(NET, "adam", outputs=["y"])
        losses = []
        for _ in range(60):
            made.forward_training()
            miss = made.output("y") - batch()["cloud.target"]
            losses.append(float((miss ** 2).mean()))
            made.backward({"y": 2 * miss / miss.size})
            made.step(0.02)
        self.assertLess(losses[-1], 0.7 * losses[0])

    def test_info(self):
        model = self.session.model
        self.assertEqual(model.outputs, [pnet.Output("y", "n.out.linear", 3, "points", "cloud", 0.0, True),
                                         pnet.Output("n.h", "n.h.sigmoid", 5, "points", "cloud", 0.0, True)])
        self.assertEqual(self.session.output_shape("n.h"), (ROWS, 5))
        self.assertEqual(self.session.output_splits("y", 1).tolist(), [0, ROWS])
        levels = pnet.Model(support.SCENE, outputs=["y"])
        self.assertEqual([(o.rows, o.cell) for o in levels.outputs], [("cells", 0.08)])

    def test_refused(self):
        usage = pnet.Status.USAGE
        self.refused(usage, "forward_training is first", self.session.backward, {})
        self.refused(usage, "nothing is computed", self.session.output, "y")
        self.session.forward_training()
        self.refused(usage, "no output `z`", self.session.output, "z")
        self.refused(usage, "expected [50, 3]", self.session.backward, {"y": numpy.zeros((ROWS, 2), numpy.float32)})
        self.refused(usage, "dtype", self.session.backward, {"y": numpy.zeros((ROWS, 3), numpy.int32)})
        self.refused(usage, "1 samples", self.session.output_splits, "y", 2)
        self.session.backward({"y": numpy.zeros((ROWS, 3), numpy.float32)})
        self.refused(usage, "no field `cloud.g`", self.session.input_gradient, "cloud.g")
        self.refused(pnet.Status.BAD_MODEL, "no value 'q'", pnet.Model, NET, outputs=["q"])


if __name__ == "__main__":
    unittest.main()
