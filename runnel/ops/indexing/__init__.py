"""Ops that read and write elements by position."""
