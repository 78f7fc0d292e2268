"""Whether events happen as often as forecast: decompositions and reliability diagrams."""
