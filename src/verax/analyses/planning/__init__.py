"""How many rows or groups would be enough."""
