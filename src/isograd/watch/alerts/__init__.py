"""The rules of `watch`: each is one unit with its thresholds, their source, and its examples."""
