"""How sites differ, and what the next one will see."""
