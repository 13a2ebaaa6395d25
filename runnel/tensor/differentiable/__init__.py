"""Differentiable compiled functions: a forward program that keeps residuals, and backward programs."""
