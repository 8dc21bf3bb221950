"""What MindSpore has for each API of torch, as data that was executed on both frameworks."""
