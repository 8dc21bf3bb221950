"""One small file for each kind of cause; `HYPOTHESES` of every file is collected.

docs/hypotheses.md says how to add one.
"""
