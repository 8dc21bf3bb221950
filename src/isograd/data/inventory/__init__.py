"""What is in a source: counts, statistics, duplicates, findings; one pass, bounded memory."""
