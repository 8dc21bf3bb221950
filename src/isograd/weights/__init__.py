"""Checkpoints: what is in them, whether they are sound, and one written as another."""
