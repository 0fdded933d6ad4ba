"""`import pnet.torch.spconv.pytorch as spconv`: the same as pnet.torch.spconv, for programs that name spconv.pytorch."""

import sys

from pnet.torch import spconv as _spconv
from pnet.torch.spconv import *  # noqa: F403
from pnet.torch.spconv import __all__  # noqa: F401

# `from pnet.torch.spconv.pytorch.modules import ..` gives the same classes, not a second copy of them.
for _name in ("conv", "core", "functional", "modules", "ops", "pool", "tables"):
    sys.modules[f"{__name__}.{_name}"] = getattr(_spconv, _name)

__path__ = _spconv.__path__  # so that imports of modules that are not there say why


def __getattr__(name):
    return getattr(_spconv, name)
