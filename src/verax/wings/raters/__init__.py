"""How much raters disagree, and how many raters a forecast is worth."""
