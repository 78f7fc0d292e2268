"""From rows to summaries: row statistics, the pass over the rows, and sums that merge."""
