"""Is a port the same network as its original? `verify_case` climbs the ladder of stages."""

from isograd.verify.ladder import verify_case

__all__ = ["verify_case"]
