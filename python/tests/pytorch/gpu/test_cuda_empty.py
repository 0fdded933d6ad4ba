"""No voxels, no points, and samples without any, on an NVIDIA GPU: the cases of test_empty.py."""

import unittest

import test_cuda  # first: it finds what lies beside this folder
import test_empty


class Empty(test_cuda.Case, test_empty.Empty):
    device = "cuda"


if __name__ == "__main__":
    unittest.main()
