"""From PyTorch source to MindSpore source: `convert_path`.

The way of a project: `walk` finds its files; `located` reads each as `scan` does and keeps which
names are members of tensors and modules (one tree at a time); `run` decides what holds for all
files; `engine` takes each file again through the `passes`, writes its imports and comments, and
parses the result; `generated` writes the module with the runtime functions that are used;
`destination` makes it appear whole or not at all.
"""

from isograd.callable_package import make_callable
from isograd.convert.conversion import Options
from isograd.convert.model import ConvertReport, FileConversion, Finding, Level
from isograd.convert.run import convert_path

__all__ = ["ConvertReport", "FileConversion", "Finding", "Level", "Options", "convert_path"]

make_callable(__name__, "isograd.api:convert")
