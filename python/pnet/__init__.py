"""Networks on point clouds: a .pnet text is compiled to a Model; a Session runs or trains it on one device. A VoxelSet convolves
features of voxels, and a PointSet those of Points, without a model.

docs/python.md shows them at work. Everything that fails raises Error; where an argument is wrong, it is a TypeError or ValueError
too.
"""

from pnet._library import Error, Status, version
from pnet.model import Diagnostic, Field, Input, Model, Objective, Output, Result, Weight
from pnet.points import Buckets, PointMap, Points, PointSet, point_loss
from pnet.session import Memory, Session, Step
from pnet.voxels import VoxelSet

__all__ = [
    "Buckets", "Diagnostic", "Error", "Field", "Input", "Memory", "Model", "Objective", "Output", "PointMap", "PointSet",
    "Points", "Result", "Session", "Status", "Step", "VoxelSet", "Weight", "point_loss",
]
__version__ = version()
