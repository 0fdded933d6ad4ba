"""What the tests share: a model, rooms of `pnetc data synth`, and pnetc itself."""

import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

import numpy

import pnet

ROOT = pathlib.Path(__file__).resolve().parents[2]
PNETC = os.environ.get("PNETC") or shutil.which("pnetc")
CLASSES = 12
SCENE = (ROOT / "examples" / "scene.pnet").read_text().replace("class[3]", "class[12]").replace("linear(3)", "linear(12)")


def run(*command):
    """Runs a command, which must succeed, and gives what it prints."""
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    if done.returncode:
        raise AssertionError(f"{command}: {done.returncode}: {done.stderr}")
    return done.stdout


def cloud(rows=2000, seed=1):
    """A random batch for SCENE of one sample in a box of two metres, classes by place."""
    draw = numpy.random.default_rng(seed)
    xyz = 2 * draw.random((rows, 3), numpy.float32)
    label = (xyz[:, 0] > 1) + 2 * (xyz[:, 1] > 1)
    return {"cloud.xyz": xyz, "cloud.rgb": draw.random((rows, 3), numpy.float32), "cloud.label": label.astype(numpy.int32)}


def session(purpose="infer", optimizer=None, seed=7, **options):
    """A session of SCENE with fresh weights."""
    made = pnet.Model(SCENE, purpose=purpose, **options).session(seed=seed, optimizer=optimizer)
    made.init()
    return made


def result(made, batch):
    """The result of a batch."""
    made.bind({name: value for name, value in batch.items() if name != "cloud.label"})
    made.forward()
    return made.result()


def read_room(path):
    """A cloud of `pnetc data synth rooms`, as pnetc feeds it to a model."""
    data = path.read_bytes()
    end = b"end_header\n"
    record = [("xyz", "<f4", 3), ("rgb", "u1", 3), ("label", "u1")]
    points = numpy.frombuffer(data, record, offset=data.index(end) + len(end))
    return {"cloud.xyz": points["xyz"], "cloud.rgb": points["rgb"] / numpy.float32(255),
            "cloud.label": points["label"].astype(numpy.int32)}


class Case(unittest.TestCase):
    def refused(self, status, part, call, *arguments, **options):
        """The call raises an Error of this status, whose message has this part."""
        with self.assertRaises(pnet.Error) as caught:
            call(*arguments, **options)
        self.assertEqual(caught.exception.status, status, caught.exception.message)
        self.assertIn(part, caught.exception.message)
        return caught.exception

    def same(self, x, y):
        """The same bits."""
        self.assertEqual((x.dtype, x.shape, x.tobytes()), (y.dtype, y.shape, y.tobytes()))


@unittest.skipUnless(PNETC, "pnetc is not there: set PNETC to its path")
class RoomCase(Case):
    """With rooms, and a folder for files."""

    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = pathlib.Path(folder.name)
        cls.rooms = cls.folder / "rooms"
        run(PNETC, "data", "synth", "rooms", "-o", cls.rooms, "--count", 10, "--points", 3000, "-q")
        cls.model = cls.folder / "scene.pnet"
        cls.model.write_text(SCENE)
