"""Recordings: what a network computed, step by step, in a folder that outlives the process."""
