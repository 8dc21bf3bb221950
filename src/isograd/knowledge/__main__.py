"""`python -m isograd.knowledge`: build, check, coverage."""

from __future__ import annotations

from isograd.knowledge.command import main

main()
