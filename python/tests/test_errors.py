"""What is wrong is an Error with a status and a sentence, and the objects work afterwards."""

import pickle
import unittest

import numpy

import pnet
import support

WRONG = "pnet 1\ninput cloud { xyz : position }\nnet n(p: cloud) { return p.rgb -> relu }\ny = n(cloud)\n"


class OnDevice:
    """As a tensor in the memory of a GPU."""

    def __array__(self, dtype=None, copy=None):
        raise TypeError("is on a GPU")


class Models(support.Case):
    def test_diagnostics(self):
        error = self.refused(pnet.Status.BAD_MODEL, "wrong.pnet:3:28: input 'cloud' has no field 'rgb'", pnet.Model, WRONG,
                             name="wrong.pnet")
        self.assertEqual(error.diagnostics, [pnet.Diagnostic(
            "error", "wrong.pnet", 3, 28, 3, 31, "input 'cloud' has no field 'rgb'", None, None)])
        self.assertEqual(str(error), error.message)
        copy = pickle.loads(pickle.dumps(error))
        self.assertEqual((copy.status, copy.message, copy.diagnostics), (error.status, error.message, error.diagnostics))
        self.refused(pnet.Status.BAD_MODEL, "/no/such.pnet", pnet.Model, "/no/such.pnet")

    def test_options(self):
        usage, bad = pnet.Status.USAGE, pnet.Status.BAD_MODEL
        self.refused(usage, "purpose is 'play', expected one of infer, eval, train", pnet.Model, support.SCENE, purpose="play")
        self.refused(usage, "sideways", pnet.Model, support.SCENE, mode="sideways")
        self.refused(usage, "zero byte", pnet.Model, support.SCENE, net="a\0b")
        self.refused(bad, "length", pnet.Model, support.SCENE, {"v": 0.1})
        self.refused(pnet.Status.FAILED, "/no/weights", pnet.Model, support.SCENE, trained="/no/weights")

    def test_params(self):
        text = """pnet 1
param b = no
param n = 1
param r = 0.5
param l = [1]
param t = "a"
param v = 1m
input cloud {
  xyz : position
  rgb : feature[3]
}
net f(p: cloud) {
  if b == no { x = error("b is wrong") }
  if n != 3 { x = error("n is wrong") }
  if r != 0.00001 { x = error("r is wrong") }
  if l[1] != 4 { x = error("l is wrong") }
  if t != "z" { x = error("t is wrong") }
  if v != 5cm { x = error("v is wrong") }
  return p.rgb -> linear(2)
}
y = f(cloud)
"""
        params = {"b": True, "n": numpy.int64(3), "r": numpy.float64(1e-5), "l": [2, 4], "t": '"z"', "v": "5cm"}
        pnet.Model(text, params).close()
        for name, other in {"b": False, "n": 7, "r": 7.0, "l": [2, 5], "t": '"y"', "v": "7m"}.items():
            self.refused(pnet.Status.BAD_MODEL, f"{name} is wrong", pnet.Model, text, {**params, name: other})

    def test_what_a_model_has(self):
        model = pnet.Model(support.SCENE, purpose="train")
        self.assertEqual([field.name for field in model.inputs[0].fields], ["xyz", "rgb", "label"])
        self.assertEqual(model.inputs[0].fields[2], pnet.Field("label", "class", 1, 12, False, True))
        self.assertEqual(model.weights[0], pnet.Weight("scene.a.unit.out.conv.weight", (27, 3, 16), True, False))
        self.refused(pnet.Status.USAGE, "PNET_PURPOSE_INFER", lambda: model.result)
        self.assertEqual(model.diagnostics, [])
        self.assertGreater(model.peak(10 ** 5), model.peak(10 ** 4))
        self.refused(pnet.Status.USAGE, "points is -1", model.peak, -1)
        self.refused(pnet.Status.USAGE, "tpu", model.peak, 100, device="tpu")


class Sessions(support.Case):
    def test_options(self):
        usage, model = pnet.Status.USAGE, pnet.Model(support.SCENE, purpose="train")
        self.refused(usage, "tpu", model.session, "tpu")
        self.refused(usage, "fp7", model.session, precision="fp7")
        self.refused(usage, "seed is -1", model.session, seed=-1)
        self.refused(usage, "seed is", model.session, seed=2 ** 64)
        self.refused(usage, "optimizer is 'lion', expected one of sgd, adam, adamw", model.session, optimizer="lion")
        self.refused(usage, "no 'lr', expected one of momentum", model.session, optimizer={"name": "sgd", "lr": 1})
        self.refused(usage, "optimizer has no name", model.session, optimizer={"momentum": 0})
        self.refused(usage, "momentum", model.session, optimizer={"name": "sgd", "momentum": 2})
        self.refused(pnet.Status.NO_MEMORY, "", support.result, self.limited(), support.cloud())

    @staticmethod
    def limited():
        session = pnet.Model(support.SCENE).session(memory_limit=300_000)
        session.init()
        return session

    def test_too_early(self):
        usage, session = pnet.Status.USAGE, pnet.Model(support.SCENE, purpose="train").session()
        self.refused(usage, "no weights", session.forward)
        session.init()
        self.refused(usage, "no batch", session.forward)
        session.bind(support.cloud())
        self.refused(usage, "first", session.objective, "ce")
        self.refused(usage, "no gradients", session.gradient, session.model.weights[0].name)
        session.gradients()
        self.refused(usage, "no optimiser", session.step, 0.1)
        self.refused(usage, "no loss or metric `none`", session.objective, "none")
        self.refused(usage, "no weight `none`", session.weight, "none")
        self.refused(usage, "no weight `none`", session.set_weight, "none", 1)
        self.refused(usage, "PNET_PURPOSE_INFER", session.result)
        session.forward()

    def test_batches(self):
        batch, session = support.cloud(), support.session("eval")
        usage, data = pnet.Status.USAGE, pnet.Status.BAD_DATA
        rows = len(batch["cloud.xyz"])
        nan, labels = batch["cloud.xyz"].copy(), batch["cloud.label"].copy()
        nan[5, 1], labels[13] = numpy.nan, 12
        for name, value, status, part in (
            ("cloud.xyz", batch["cloud.xyz"][:, :2], usage, f"[{rows}, 2], expected [{rows}, 3]"),
            ("cloud.rgb", batch["cloud.rgb"][:-1], usage, f"[{rows - 1}, 3], expected [{rows}, 3]"),
            ("cloud.rgb", batch["cloud.rgb"].astype(float), usage, "cloud.rgb has the type float64, expected float32"),
            ("cloud.rgb", batch["cloud.rgb"].astype(">f4"), usage, "cloud.rgb has the type >f4"),
            ("cloud.rgb", batch["cloud.rgb"].astype(numpy.int32), usage, "cloud.rgb"),
            ("cloud.rgb", numpy.float32(1), usage, "cloud.rgb has 0 dimensions"),
            ("cloud.rgb", object(), usage, "cloud.rgb is of class object, expected an array"),
            ("cloud.rgb", [[None] * 3] * rows, usage, "cloud.rgb has the type object"),
            ("cloud.rgb", OnDevice(), usage, "cloud.rgb: is on a GPU"),
            ("cloud.colour", batch["cloud.rgb"], usage, "no input `cloud.colour`"),
            ("cloud.label", labels, data, "row 13: the label 12"),
            ("cloud.xyz", nan, data, "1 points"),
            ("cloud", [0, 5], data, f"is 5, expected {rows}"),
            ("cloud", [0.0, 5.0], usage, "cloud has the type float64"),
        ):
            self.refused(status, part, session.bind, {**batch, name: value})
        self.refused(usage, "cloud.xyz is missing", session.bind, {})
        session.bind(batch)
        session.forward()
        self.assertGreater(session.objective("ce"), 0)

    def test_weights(self):
        session, names = support.session("train"), support.session("train").model.weights
        first = session.weight(names[0].name)
        usage = pnet.Status.USAGE
        self.refused(usage, "is float64 [27, 3, 16], expected float32", session.set_weight, names[0].name, first.astype(float))
        self.refused(usage, "is float32 [1296], expected float32 [27, 3, 16]", session.set_weight, names[0].name, first.ravel())
        self.refused(usage, "is folded", support.session().weight, names[0].name)
        self.refused(usage, "folded", support.session().save, "out.safetensors")
        self.refused(pnet.Status.FAILED, "/no/weights", session.load, "/no/weights")
        self.refused(pnet.Status.FAILED, "/no/folder", session.save, "/no/folder/w")
        self.refused(usage, "folded", session.copy_weights, support.session())
        self.same(session.weight(names[0].name), first)


if __name__ == "__main__":
    unittest.main()
