"""Why two pipelines differ: each hypothesis is a unit with examples; `decide.py` chooses.

A hypothesis is fitted on some samples and proved on others: applied to what A yields, or to what
entered both, it must yield what B yields.  The library is in this order: what concerns any numbers,
images, labels, sequences of tokens, boxes.
"""
