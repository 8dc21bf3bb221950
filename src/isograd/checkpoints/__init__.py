"""Files of named tensors of any origin, read one tensor at a time and without any framework."""
