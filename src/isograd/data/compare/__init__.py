"""Whether two pipelines yield the same: samples, order, fields, transforms, causes."""
