"""Comparing two sets of tensors in files, and two logs of losses, without either framework."""
