"""A web page over everything that the verbs wrote or can read, on this machine alone."""
