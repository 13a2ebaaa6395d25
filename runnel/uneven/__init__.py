"""Batches of rows that have different lengths, without padding."""
