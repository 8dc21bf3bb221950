"""Names the cause of a divergence by experiment: hypotheses, matched filter, proof."""
