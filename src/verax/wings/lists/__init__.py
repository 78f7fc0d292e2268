"""Top lists: their files, lengths and combinations."""
