"""`python -m isograd` is the command `isograd`."""

import sys

from isograd.cli import main

sys.exit(main())
