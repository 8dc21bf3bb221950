"""What MindSpore's static graph makes of Python: a table of constructs, executed."""
