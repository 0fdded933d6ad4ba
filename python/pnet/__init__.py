"""Networks on point clouds: a .pnet text is compiled to a Model; a Session runs or trains it on one device. A VoxelSet convolves
features of voxels without a model.

docs/python.md shows them at work. Everything that fails raises Error.
"""

from pnet._library import Error, Status, version
from pnet.model import Diagnostic, Field, Input, Model, Objective, Result, Weight
from pnet.session import Memory, Session, Step
from pnet.voxels import VoxelSet

__all__ = [
    "Diagnostic", "Error", "Field", "Input", "Memory", "Model", "Objective", "Result", "Session", "Status", "Step", "VoxelSet",
    "Weight",
]
__version__ = version()
