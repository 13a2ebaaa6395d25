"""Convolutions and pooling over spatial axes."""
