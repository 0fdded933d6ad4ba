"""No voxels, no points, and samples without any, and wrong voxels, on an NVIDIA GPU: the cases of test_empty.py and test_values.py."""

import unittest

import test_cuda  # first: it finds what lies beside this folder
import test_empty
import test_values


class Empty(test_cuda.Case, test_empty.Empty):
    device = "cuda"


class Voxels(test_cuda.Case, test_values.Voxels):
    device = "cuda"


if __name__ == "__main__":
    unittest.main()
