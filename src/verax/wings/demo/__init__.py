"""The tour of `verax demo`, and the files of the documentation."""
