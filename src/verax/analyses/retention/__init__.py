"""What a metric becomes as rows are removed."""
