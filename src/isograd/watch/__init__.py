"""Is this training healthy, and where did the first value arise that is not finite?"""

from isograd.callable_package import make_callable

make_callable(__name__, "isograd.watch.run:watch")
