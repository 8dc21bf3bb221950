"""A MindSpore network under the static graph: `jit` and GRAPH_MODE, in a process of its own."""
