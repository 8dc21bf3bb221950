"""Source to findings: what a PyTorch project uses, without importing or running it."""
