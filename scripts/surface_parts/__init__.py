"""What `scripts/surface.py` is made of."""
