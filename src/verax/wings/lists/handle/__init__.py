"""Rows of top lists as handles and parts: files of records, and columns of tables."""
