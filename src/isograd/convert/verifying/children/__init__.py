"""Files that run in a worker beside a case; they are copied there and import nothing of isograd."""
