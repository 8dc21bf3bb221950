"""Files that run where torch is; they import nothing of isograd."""
