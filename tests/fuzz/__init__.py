"""Draw random programs and run them in every mode."""
