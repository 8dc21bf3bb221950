"""The knowledge's examples executed on both frameworks."""
