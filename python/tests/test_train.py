"""Training: the losses of pnetc train, steps by their formulas, weights in and out."""

import json
import unittest

import numpy

import pnet
import support

DATA = """\
pnet_dataset: 1
task: segmentation
classes: [ceiling, floor, wall, door, window, board, table, chair, sofa, shelf, lamp, clutter]
label_field: label
train: [{cloud: train/000000.ply}]
val: [{cloud: val/000008.ply}]
"""
RUN = "data: rooms/one.yaml\nsteps: 6\noptimizer: {name: adamw, beta2: 0.99}\nweight_decay: 0.05\nclip_grad: 0.5\nlr: 0.01\n"


class Rooms(support.RoomCase):
    def test_same_losses_as_pnetc(self):
        (self.rooms / "one.yaml").write_text(DATA)
        (self.folder / "run.yaml").write_text(RUN)
        support.run(support.PNETC, "train", self.model, "--config", self.folder / "run.yaml", "-o", self.folder / "run",
                    "--seed", 5, "-q")
        lines = [json.loads(line) for line in (self.folder / "run" / "metrics.jsonl").read_text().splitlines()]
        wanted = [(line["loss.ce"], line["gradient_norm"]) for line in lines if "gradient_norm" in line]
        self.assertEqual(len(wanted), 6)
        session = support.session("train", {"name": "adamw", "beta2": 0.99, "weight_decay": 0.05}, seed=5)
        session.bind(support.read_room(self.rooms / "train" / "000000.ply"))
        given = []
        for number in range(1, 7):
            session.gradients()
            step = session.step(0.01, clip=0.5)
            given.append((session.objective("ce"), step.gradient_norm))
            self.assertEqual((step.skipped, step.steps), (False, number))
        self.assertEqual(given, wanted)
        self.assertLess(given[-1][0], given[0][0])

        weights = self.folder / "weights.safetensors"
        session.save(weights)
        with pnet.Model(self.model, trained=self.folder / "run") as model:
            loaded, trained = model.session(), model.session()
            loaded.load(weights)
            trained.load(self.folder / "run" / "last")
            room = support.read_room(self.rooms / "test" / "000009.ply")
            self.same(support.result(loaded, room), support.result(trained, room))
            trained.init()
            trained.copy_weights(session)
            self.same(support.result(loaded, room), support.result(trained, room))


class Steps(support.Case):
    def setUp(self):
        self.batch = support.cloud()

    def trained(self, optimizer=None):
        session = support.session("train", optimizer)
        session.bind(self.batch)
        return session

    def test_sgd_by_its_formula(self):
        session = self.trained({"name": "sgd", "momentum": 0.8, "nesterov": True, "weight_decay": 0.1, "decay_all": True})
        names = [w.name for w in session.model.weights if w.trained]
        weights = {name: session.weight(name).astype(float) for name in names}
        velocity = {name: 0.0 for name in names}
        for _ in range(3):
            session.gradients()
            session.step(0.1)
            for name in names:
                slope = session.gradient(name) + 0.1 * weights[name]
                velocity[name] = 0.8 * velocity[name] + slope
                weights[name] -= 0.1 * (slope + 0.8 * velocity[name])
                numpy.testing.assert_allclose(session.weight(name), weights[name], atol=2e-6, err_msg=name)
                session.set_weight(name, weights[name].astype(numpy.float32))

    def test_defaults_of_sgd(self):
        last = []
        for settings in "sgd", {"name": "sgd"}, {"name": "sgd", "momentum": 0.9, "nesterov": False, "weight_decay": 0}, \
                {"name": "sgd", "momentum": 0}:
            session = self.trained(settings)
            for _ in range(2):
                session.gradients()
                session.step(0.1)
            last.append(numpy.concatenate([session.weight(w.name).ravel() for w in session.model.weights if w.trained]))
        numpy.testing.assert_array_equal(last[0], last[1])
        numpy.testing.assert_array_equal(last[0], last[2])
        self.assertGreater(abs(last[0] - last[3]).max(), 1e-4)

    def test_gradients_add_up(self):
        session = self.trained()
        name = session.model.weights[0].name
        session.gradients()
        whole = session.gradient(name)
        self.assertEqual(whole.shape, session.model.weights[0].shape)
        session.gradients(0.25)
        session.gradients(0.75, accumulate=True)
        numpy.testing.assert_allclose(session.gradient(name), whole, atol=1e-5 * numpy.abs(whole).max())
        session.set_gradient(name, whole)
        self.same(session.gradient(name), whole)
        session.set_weight(name, numpy.moveaxis(numpy.moveaxis(whole, 0, 2).copy(), 2, 0))  # of any strides
        self.same(session.weight(name), whole)

    def test_metrics(self):
        session = support.session("eval")
        self.assertEqual(session.model.objectives, [pnet.Objective("ce", False), pnet.Objective("oa", True)])
        session.bind(self.batch)
        session.forward()
        scores = support.result(support.session(), self.batch)
        self.assertEqual(session.objective("oa"), (scores.argmax(1) == self.batch["cloud.label"]).mean())
        largest = scores.max(1, keepdims=True)
        right = scores[range(len(scores)), self.batch["cloud.label"]]
        lost = numpy.log(numpy.exp(scores - largest).sum(1)) + largest[:, 0] - right
        self.assertAlmostEqual(session.objective("ce"), lost.mean(), places=5)

    def test_class_weights(self):
        session = support.session("eval", class_weights=[1] * 3 + [5] * 9)
        session.bind(self.batch)
        session.forward()
        plain = support.session("eval")
        plain.bind(self.batch)
        plain.forward()
        self.assertNotEqual(session.objective("ce"), plain.objective("ce"))


if __name__ == "__main__":
    unittest.main()
