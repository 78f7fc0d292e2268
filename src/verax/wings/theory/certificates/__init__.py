"""The search for counterexamples to what a rule promises."""
