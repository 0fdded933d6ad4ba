"""page.py: it finds all code of a page, and says what is wrong with blocks that it does not run."""

import contextlib
import io
import pathlib
import tempfile
import traceback
import unittest

import page

CPU = "```python\nimport math\n\nx = 3\n```\n"


class Pages(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.file = pathlib.Path(folder.name, "page.md")

    def main(self, text):
        self.file.write_text(text)
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            page.main(self.file)
        return printed.getvalue()

    def gpu(self, code):
        return self.main(f"{CPU}\n```python cuda\n{code}\n```\n")

    def refused(self, error, part, run, text):
        with self.assertRaises(error) as caught:
            run(text)
        self.assertIn(part, str(caught.exception))

    def test_order(self):
        said = self.main(f"# A page\n\n{CPU}\n- a list\n    that goes on\n\n```python\nprint(x + 1)\n```\n"
                         "```text\n4 of 5.5\n```\n")
        self.assertEqual(said, f"4\n{self.file}: 2 blocks ran, and 0 for a GPU are in order\n")
        self.assertEqual(page.shown(self.file), ["N of N"])

    def test_lines(self):
        try:
            self.main(f"{CPU}\n```python\n\nx / 0\n```\n")
        except ZeroDivisionError as error:
            last = traceback.extract_tb(error.__traceback__)[-1]
        self.assertEqual((last.filename, last.lineno), (str(self.file), 9))

    def test_nothing_is_forgotten(self):
        for text in ("```c\nint x;\n```\n", "```python GPU\nx = 1\n```\n", "```\nx = 1\n```\n"):
            self.refused(ValueError, "nothing runs it", self.main, CPU + text)
        self.refused(ValueError, "page.md:9: indented code", self.main, f"{CPU}\nText:\n\n    x = 1\n")
        self.refused(ValueError, "does not end", self.main, "```python\nx = 1\n")

    def test_for_a_gpu(self):
        """Such blocks are not run, and may use what earlier ones make."""
        for code in ("y = math.sqrt(x)\nraise ValueError", "def f(a):\n    return a + x", "import math as m\nm.sqrt(2)",
                     "from os import path\npath.join('a')", "import os.path\nos.path.join('a')",
                     "import no_such_library\nno_such_library.f()", "y = [i for i in range(x)]",
                     "with open(x) as y:\n    print(y)"):
            self.assertIn("1 blocks ran, and 1 for a GPU", self.gpu(code))
        self.assertIn("2 for a GPU", self.main(f"{CPU}```python cuda\nz = 1\n```\n```python cuda\nprint(z)\n```\n"))

    def test_wrong_for_a_gpu(self):
        self.refused(SyntaxError, "page.md", self.gpu, "y = = 2")
        for code, part in (("print(z)", "page.md:8: there is no z"), ("math.squared(2)", "math has no squared"),
                           ("from math import squared", "math has no squared"),
                           ("import os.path\nos.path.joint('a')", "has no joint"),
                           ("import math as m\nm.squared(2)", "has no squared")):
            self.refused(page.Missing, part, self.gpu, code)
        self.refused(ImportError, "nowhere", self.gpu, "import os.nowhere")
        late = f"{CPU}```python cuda\nprint(z)\n```\n```python cuda\nz = 1\n```\n"
        self.refused(page.Missing, "there is no z", self.main, late)


if __name__ == "__main__":
    unittest.main()
