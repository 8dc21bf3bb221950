"""How much a file may ask for before it is refused: every number that bounds a hostile input."""

from __future__ import annotations

#: Pixels that an image may declare.  The largest photographs are near 2^27.
MAX_PIXELS = 1 << 28
#: Bytes that one record, member or file of a sample may hold.
MAX_RECORD_BYTES = 1 << 30
#: Bytes that a header, an index or one line may hold.
MAX_HEADER_BYTES = 1 << 26
#: Fields that one sample may have.
MAX_FIELDS = 4096
#: Levels to which JSON may nest.
MAX_DEPTH = 64
#: Lengths of a field that an inventory lists apart.
MAX_SHAPES = 64
