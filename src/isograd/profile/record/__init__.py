"""Recording a training: which steps are looked at how, marks, the framework's profiler, lines.

Every step is in one window: `warm-up`, `plain` (marks only), `profiled` (the framework's profiler
and samples of the Python stack), `modules` (module times), `source` (lines of operators). The
answer's times come from plain steps, so that no observer is part of them.
"""
