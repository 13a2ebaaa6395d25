"""Observing a call: what it reads from outside, what it changes, and the guards made of that."""
