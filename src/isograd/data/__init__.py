"""`isograd data`: what a data set or pipeline yields, and whether two pipelines yield the same."""
