"""Training loops of the usual form, written as one compiled step.

`recognise` finds the loops by the shape of their statements and by data flow, `write` writes each
anew in torch's terms around MindSpore's `value_and_grad` and `jit`, and `project` decides for all
files of a project at once: gradients are either recorded or computed by compiled steps.
"""
