"""Readers: files of profilers to the columns of `isograd.profile.model`."""
