"""Compiled forwards as differentiable programs: a forward that keeps residuals, and backward programs for them."""
