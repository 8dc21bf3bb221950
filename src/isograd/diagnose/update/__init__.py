"""Which rule the port's optimizer follows: found by replaying the fed gradients under each."""
