"""Is a port the same network as its reference? `verify_case` climbs the ladder of stages.

`diagnose_case` looks at one module alone; `list_modules` says which there are.
"""

from isograd.callable_package import make_callable
from isograd.verify.diagnose_case import diagnose_case, list_modules
from isograd.verify.ladder import verify_case

__all__ = ["diagnose_case", "list_modules", "verify_case"]

make_callable(__name__, "isograd.api:verify")
