"""Observing a call: what it read from outside and where it found it, what it changed, and guards made of that."""
