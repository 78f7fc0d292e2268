"""Grades of a judge, such as a language model, corrected by those of people."""
