"""Messages between ranks: segments of a backward pass, their cost, slow ranks and links."""
