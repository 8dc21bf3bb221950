"""Executes the table of constructs: eagerly, under `jit`, strictly, and in GRAPH_MODE."""
