"""Not there: an import says why, and what is there instead."""

from pnet.torch import spconv

spconv.refuse_import(__name__)
