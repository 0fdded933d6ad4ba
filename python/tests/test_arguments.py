"""Every public function and method, with wrong arguments: None, objects of other classes, closed ones, and what is no object of
the package. Each is refused with an Error that names the argument, and none ends the process or reads what it is not.

The calls run in a process of their own, because a wrong handle may end it; what it prints is checked here.
"""

import inspect
import os
import subprocess
import sys
import tempfile
import unittest

import numpy

import pnet
import support

# Arguments that may be anything, since their truth counts; and those that may be None.
FLAGS = {"accumulate", "gradients of point_loss", "sums", "argmax of PointMap.forward", "wait", "wrap", "input_gradients"}
OPTIONAL = {"mode", "trained", "net", "value of Model", "class_weights", "out of Session.weight", "out of Session.gradient",
            "out of Session.result", "out of Session.output", "out of Session.input_gradient", "precision", "optimizer", "device",
            "stream", "allocator", "row_splits", "sample", "batches of Points", "cell of Points", "source of PointSet", "radius",
            "knn", "cell of Buckets", "bias", "scale of Buckets.attend", "scale of Buckets.attend_backward",
            "argmax of PointMap.backward"}
ANY_TEXT = {"name of Model", "path of Session.save"}


class Given:
    """Objects of every class, and closed ones."""

    def __init__(self, folder):
        draw = numpy.random.default_rng(1)
        self.xyz = draw.random((50, 3), numpy.float32)
        self.voxels = numpy.array([[0, 1, 1, 1], [0, 1, 1, 2], [0, 2, 1, 1]], numpy.int32)
        self.path = os.path.join(folder, "w.safetensors")
        self.model = pnet.Model(support.SCENE, purpose="train", outputs=["y"], input_gradients=True)
        self.session = self.trained()
        self.session.save(self.path)
        net = pnet.Model(support.SCENE)
        self.infers = net.session()
        self.infers.copy_weights(self.session)
        self.infers.bind({name: value for name, value in support.cloud(100).items() if name != "cloud.label"})
        self.infers.forward()
        self.points = pnet.Points(self.xyz, cell=0.1)
        self.level = self.points.grid(0.1)
        self.set = pnet.VoxelSet(self.voxels, 4)
        self.near = pnet.PointSet(self.level)
        self.map = pnet.PointMap(self.level, self.points, "max")
        self.buckets = pnet.Buckets(self.level, bucket=16)
        self.closed = [pnet.Model(support.SCENE), net.session(), pnet.Points(self.xyz), pnet.VoxelSet(self.voxels, 4),
                       pnet.PointMap(self.level, self.points), pnet.Buckets(self.level, bucket=16), pnet.PointSet(self.level)]
        for one in self.closed:
            one.close()

    def trained(self):
        made = self.model.session(optimizer="adam")
        made.init()
        made.bind(support.cloud(100))
        made.gradients()
        return made

    def calls(self):
        """Name, callable, arguments by name that are right."""
        x, w = numpy.ones((3, 4), numpy.float32), numpy.ones((27, 4, 2), numpy.float32)
        rows = self.level.rows
        of_level, of_points = (numpy.ones((n, 24), numpy.float32) for n in (rows, 50))
        result, sums = self.buckets.attend(of_level)
        weight, s, y = self.model.weights[0].name, self.session, self.session.output("y")
        column = numpy.zeros(3, numpy.int32)
        names = {"name": weight}
        self.session.forward_training()
        return [
            ("Model", pnet.Model, dict(
                text_or_path=support.SCENE, params={"v": "10cm"}, mode="native", purpose="infer", trained=self.path, net="scene",
                value=None, class_weights=[1.0] * 12, name="a", outputs=["y"], input_gradients=False)),
            ("Model.peak", self.model.peak, dict(points=10, device="cpu", precision="fp32")),
            ("Model.session", self.model.session, self.options()),
            ("Session", pnet.Session, {"model": self.model, **self.options()}),
            ("Session.init", s.init, {}),
            ("Session.load", s.load, dict(path=self.path)),
            ("Session.copy_weights", s.copy_weights, dict(source=s)),
            ("Session.save", s.save, dict(path=self.path)),
            ("Session.weight", s.weight, {**names, "out": None}),
            ("Session.set_weight", s.set_weight, {**names, "value": s.weight(weight)}),
            ("Session.gradient", s.gradient, {**names, "out": None}),
            ("Session.set_gradient", s.set_gradient, {**names, "value": s.weight(weight)}),
            ("Session.bind", s.bind, dict(values=support.cloud(100))),
            ("Session.forward", s.forward, {}),
            ("Session.result", self.infers.result, dict(out=None)),
            ("Session.result_shape", self.infers.result_shape, {}),
            ("Session.output_shape", s.output_shape, dict(name="y")),
            ("Session.output_splits", s.output_splits, dict(name="y", samples=1)),
            ("Session.output", s.output, dict(name="y", out=None)),
            ("Session.objective", s.objective, dict(name="ce")),
            ("Session.gradients", s.gradients, dict(scale=1.0, accumulate=False)),
            ("Session.forward_training", s.forward_training, {}),
            ("Session.backward", s.backward, dict(gradients={"y": y}, scale=0.0, accumulate=False)),
            ("Session.input_gradient", s.input_gradient, dict(name="cloud.rgb", out=None)),
            ("Session.step", s.step, dict(learning_rate=0.1, clip=0.0, loss_scale=1.0, wait=True)),
            ("Session.memory", s.memory, {}),
            ("VoxelSet", pnet.VoxelSet, dict(
                indices=self.voxels, extent=[4, 4, 4], kernel=3, kind="submanifold", stride=1, padding=0, dilation=1,
                output_padding=0, batches=1)),
            ("VoxelSet.from_triplets", pnet.VoxelSet.from_triplets, dict(i=column, j=column, k=column, rows_out=1, rows_in=1,
                                                                       taps=1)),
            ("VoxelSet.inverse", self.set.inverse, {}),
            ("VoxelSet.indices", self.set.indices, {}),
            ("VoxelSet.triplets", self.set.triplets, {}),
            ("VoxelSet.conv", self.set.conv, dict(features=x, weights=w, bias=w[0, 0], groups=1)),
            ("VoxelSet.conv_grad_input", self.set.conv_grad_input, dict(gradient=x[:, :2], weights=w, groups=1)),
            ("VoxelSet.conv_grad_weight", self.set.conv_grad_weight, dict(features=x, gradient=x[:, :2], groups=1)),
            ("Points", pnet.Points, dict(positions=self.xyz, row_splits=numpy.array([0, 50]), sample=None, batches=1, cell=0.1)),
            ("Points", pnet.Points, dict(positions=self.xyz, row_splits=None, sample=numpy.zeros(50, numpy.int32), batches=1,
                                         cell=0.1)),
            ("Points.grid", self.points.grid, dict(cell=0.1)),
            ("Points.positions", self.points.positions, {}),
            ("Points.samples", self.points.samples, {}),
            ("Points.sources", self.points.sources, {}),
            ("Points.parents", self.points.parents, dict(coarse=self.level)),
            ("PointSet", pnet.PointSet, dict(out=self.level, source=self.points, kernel=3, radius=0.2, knn=None, shape="ball",
                                             degrade=[])),
            ("PointSet", pnet.PointSet, dict(out=self.level, source=self.points, kernel=3, radius=None, knn=4, shape="cube",
                                             degrade=[])),
            ("PointMap", pnet.PointMap, dict(out=self.level, source=self.points, kind="inverse_distance", k=3, outside="zero")),
            ("PointMap.forward", self.map.forward, dict(features=of_points, argmax=True)),
            ("PointMap.backward", self.map.backward, dict(gradient=of_level, argmax=self.map.forward(of_points, True)[1])),
            ("Buckets", pnet.Buckets, dict(points=self.level, order="hilbert", bucket=16, scope=8, shift=0, stride=1, wrap=False,
                                           cell=0.1)),
            ("Buckets.attend", self.buckets.attend, dict(qkv=of_level, heads=1, scale=0.5)),
            ("Buckets.attend_backward", self.buckets.attend_backward, dict(qkv=of_level, result=result, log_sum=sums,
                                                                           gradient=result, scale=0.5)),
            ("point_loss", pnet.point_loss, dict(kind="infocd", x=self.level, y=self.points, gradients=True, tau=0.5, sums=True)),
            ("point_loss", pnet.point_loss, dict(kind="apml", x=self.level, y=self.points, gradients=False, rounds=3,
                                                 lambda_=0.5)),
        ]

    @staticmethod
    def options():
        return dict(device="cpu", precision="fp32", seed=1, optimizer={"name": "adam", "eps": 1e-8}, memory_limit=0,
                    arrays="host", stream=0, allocator=None)

    def wrong(self):
        return [None, object(), pnet, Given, 1.5, "no such", b"\xff", {"no such": 1}, ["no such"], numpy.array([object()] * 3),
                numpy.float32(2), self.model, self.session, self.points, self.set, self.near, self.map, self.buckets,
                *self.closed]


def is_closed(value):
    return isinstance(value, (pnet.Model, pnet.Session, pnet.Points, pnet.VoxelSet, pnet.PointMap, pnet.Buckets)) and (
        not value._freed.alive)


def takes(call, name, right, value):
    """May the argument be this value?"""
    place = {name, f"{name} of {call}"}
    if place & FLAGS or value is None and place & OPTIONAL:
        return True
    if isinstance(value, (str, bytes)):
        return bool(place & ANY_TEXT)
    if isinstance(value, (float, numpy.float32)):
        return isinstance(right, float)
    handles = pnet.Model, pnet.Session, pnet.Points
    return isinstance(right, handles) and isinstance(value, type(right)) and not is_closed(value)


def complaint(name, value, error):
    """What is wrong with what a call raised, or None."""
    if not isinstance(error, pnet.Error):
        return f"{type(error).__name__}: {error}"
    if value is None and not isinstance(error, TypeError):
        return f"no TypeError: {error}"
    # a value that has a name, such as a weight, is named by it; a wrong text is quoted
    parts = name.rstrip("_"), "scene.", "no such", "\\xff", "is closed" if is_closed(value) else name
    return None if any(part in error.message for part in parts) else f"does not name it: {error}"


def attack(folder):
    """Prints each call before it is made, and what is wrong with its outcome."""
    given, count = Given(folder), 0
    table = given.calls()
    for call, function, right in table:
        for name in right:
            for value in given.wrong():
                if takes(call, name, right[name], value):
                    continue
                count += 1
                print("call", call, name, ascii(value)[:60], flush=True)
                try:
                    function(**{**right, name: value})
                    wrong = "was taken"
                except BaseException as error:
                    wrong = complaint(name, value, error)
                if wrong:
                    print("wrong", call, name, ascii(value)[:60], ascii(wrong), flush=True)
        function(**right)  # some calls need those before them
    arguments = {call: right for call, _, right in table}
    for one in given.closed:
        for method in methods(type(one)):
            count += 1
            kind = "VoxelSet" if isinstance(one, pnet.VoxelSet) else type(one).__name__
            print("call closed", kind, method, flush=True)
            try:
                getattr(one, method)(**arguments[f"{kind}.{method}"])
                print("wrong closed", kind, method, "was taken", flush=True)
            except BaseException as error:
                if not isinstance(error, pnet.Error):
                    print("wrong closed", kind, method, type(error).__name__, ascii(error), flush=True)
    print("done", count, flush=True)


def methods(kind):
    """The public methods that use an object."""
    others = {"begun", "own_process", "close", "from_triplets"}
    return [name for name, _ in inspect.getmembers(kind, callable) if not name.startswith("_") and name not in others]


class Arguments(support.Case):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def test_all_are_called(self):
        """The table has every public function, every method and every argument."""
        table = {}
        for call, _, right in Given(self.folder).calls():
            table.setdefault(call, set()).update(right)
        handles = [pnet.Model, pnet.Session, pnet.VoxelSet, pnet.Points, pnet.PointSet, pnet.PointMap, pnet.Buckets]
        calls = {kind.__name__: kind.__init__ for kind in handles} | {"point_loss": pnet.point_loss}
        for kind in handles:
            if kind is not pnet.PointSet:  # whose methods are those of VoxelSet
                calls |= {f"{kind.__name__}.{name}": getattr(kind, name) for name in methods(kind)}
        calls["VoxelSet.from_triplets"] = pnet.VoxelSet.from_triplets
        self.assertEqual(set(table), set(calls))
        for name, function in calls.items():
            parameters = {p.name for p in inspect.signature(function).parameters.values() if p.kind is not p.VAR_KEYWORD}
            self.assertLessEqual(parameters - {"self"}, table[name], name)
        known = {kind.__name__ for kind in handles} | {"point_loss", "Error", "Status"}
        for name in pnet.__all__:
            if name not in known:
                self.assertTrue(issubclass(getattr(pnet, name), tuple), f"{name} is not in the table")

    def test_right_ones(self):
        """What the table calls right is taken, so that one argument alone is wrong."""
        for call, function, right in Given(self.folder).calls():
            with self.subTest(call):
                function(**right)

    def test_wrong_ones(self):
        path = os.pathsep.join([os.path.dirname(os.path.abspath(__file__)), *sys.path])
        code = "import sys, test_arguments; test_arguments.attack(sys.argv[1])"
        done = subprocess.run([sys.executable, "-c", code, self.folder], capture_output=True, text=True,
                              env={**os.environ, "PYTHONPATH": path})
        lines = done.stdout.splitlines()
        last = lines[-1] if lines else ""
        self.assertEqual(done.returncode, 0, f"{last}\n{done.stderr}")
        wrong = [line for line in lines if line.startswith("wrong")]
        self.assertFalse(wrong, "\n".join(wrong))
        self.assertRegex(last, "^done [0-9]{4}$")

    def test_messages(self):
        given = Given(self.folder)
        for part, call, *arguments in (
            ("source is of class pnet.model.Model, expected pnet.session.Session", given.session.copy_weights, given.model),
            ("model is of class pnet.points.Points, expected pnet.model.Model", pnet.Session, given.points),
            ("coarse is of class pnet.session.Session, expected pnet.points.Points", given.points.parents, given.session),
            ("out is of class pnet.session.Session, expected pnet.points.Points", pnet.PointSet, given.session, given.model),
            ("points is of class pnet.session.Session, expected pnet.points.Points", pnet.Buckets, given.session),
            ("source is of class pnet.voxels.VoxelSet, expected pnet.points.Points", pnet.PointMap, given.level, given.set),
            ("y is None, expected pnet.points.Points", pnet.point_loss, "emd", given.level, None),
            ("path is None, expected str or a path", given.session.load, None),
            ("text_or_path is None, expected str or a path", pnet.Model, None),
            ("seed is 1.5, expected an integer", given.model.session, "cpu", None, 1.5),
        ):
            error = self.refused(pnet.Status.USAGE, part, call, *arguments)
            self.assertIsInstance(error, TypeError)


if __name__ == "__main__":
    unittest.main()
