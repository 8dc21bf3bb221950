"""What MindSpore has for each API of torch, as data that was executed on both frameworks."""

from isograd.knowledge.store import Knowledge, load_knowledge

__all__ = ["Knowledge", "load_knowledge"]
