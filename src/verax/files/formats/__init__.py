"""Readers of the file formats: tables of columns, and NumPy files."""
