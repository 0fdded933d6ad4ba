"""The scripts of bench/ that time pnet.torch run, in a short form, and their numbers are of the right kind."""

import json
import os
import pathlib
import subprocess
import sys
import unittest

BENCH = pathlib.Path(__file__).resolve().parents[3] / "bench"


class Bench(unittest.TestCase):
    def run_script(self, name, *options):
        done = subprocess.run([sys.executable, str(BENCH / name), *options], capture_output=True, text=True, timeout=600,
                              env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)})
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def test_torch_calls(self):
        found = json.loads(self.run_script("torch_calls.py", "--device", "cpu", "--layers", "3", "--repeat", "5", "--json"))
        self.assertEqual((found["device"], found["layers"], found["rows"]), ("cpu", 3, 200))
        self.assertGreater(found["spconv_us"], found["library_us"])
        self.assertGreater(found["eager_ms"], 0)
        said = self.run_script("torch_calls.py", "--device", "cpu", "--layers", "2", "--repeat", "2", "--precision", "bf16")
        self.assertIn("over a call", said)


if __name__ == "__main__":
    unittest.main()
