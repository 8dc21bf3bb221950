"""Data sets in another format: streamed, read back and compared, and whole or not there at all."""
