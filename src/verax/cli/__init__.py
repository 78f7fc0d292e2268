"""The command line: one module per command. `commands` imports them all."""
