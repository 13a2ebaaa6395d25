"""Ops and functions of each element."""
