"""From PyTorch source to MindSpore source."""
