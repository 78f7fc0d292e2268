"""What rules promise, pictures of rules, and published numbers recomputed."""
