"""Readers of files: arrays, text, images and tables."""
