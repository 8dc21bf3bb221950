"""From the columns of a profile to what a person asks: phases, self time, bottlenecks."""
