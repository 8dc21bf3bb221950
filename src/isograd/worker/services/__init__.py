"""What answers in a worker, one file for each family of requests (`isograd.worker.protocols`)."""
