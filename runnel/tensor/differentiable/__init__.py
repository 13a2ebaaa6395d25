"""Differentiate programs: a forward program that keeps residuals, and backward programs that read them."""
