"""Derivatives of rules with respect to the logits."""
