"""Planted bottlenecks: training scripts with one thing wrong, and what must be found."""
