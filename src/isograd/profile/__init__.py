"""Profiles of training runs: what limits the step, what would change it, and by how much.

The way of the data: `read` (files to columns) or `record` (a running training to files) → `Profile`
(model.py) → `analyse` (phases, operators, queues, ranks) → `rules` (findings) → `ProfileReport`
(report.py) → `document.py`.
"""

from isograd.callable_package import make_callable

make_callable(__name__, "isograd.profile.run:profile")
