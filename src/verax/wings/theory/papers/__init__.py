"""Published numbers beside what they should be: one module per paper."""
