"""From a report value to text, JSON and HTML: pure functions, one small module each."""
