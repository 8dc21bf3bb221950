"""From torch.export's program to a readable MindSpore module."""
