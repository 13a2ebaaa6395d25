"""Tensor expressions and their schedules: a language for loops over elements, compiled to one kernel each."""
