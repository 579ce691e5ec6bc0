"""Forms in which people have a history: each file reads one into turns."""
