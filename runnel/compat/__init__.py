"""Other libraries' interfaces, a module for each: programs that were written for them run with another import line."""
