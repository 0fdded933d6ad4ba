"""No rows, and wrong voxels, on an NVIDIA GPU: the cases of test_empty.py, and those of test_values.py that have a device."""

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
