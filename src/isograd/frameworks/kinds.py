"""Kinds of random draws, which are let rule one at a time."""

from __future__ import annotations

#: Dropouts, and the uniform and Bernoulli numbers that masks are made of.
MASKS = "masks"
#: All other draws.
NOISE = "noise"
