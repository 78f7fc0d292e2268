"""How results are shown: text tables, figures, files that are written whole."""
