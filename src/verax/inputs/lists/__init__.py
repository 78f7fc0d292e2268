"""Top lists: their constructors, the forms they read, and their rows."""
