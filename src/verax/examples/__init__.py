"""Examples: the small files of the documentation, and a tour of one problem."""
