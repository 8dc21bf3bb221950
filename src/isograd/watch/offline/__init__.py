"""Runs that others wrote: logs, checkpoints, dumps, and msprobe's monitor."""
