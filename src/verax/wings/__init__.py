"""Wings: a folder for each subject that the core does not know."""
