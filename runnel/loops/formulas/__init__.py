"""Formulas of the scalar operations: exp, log, tanh and the like, conversions, division, one file per family.

Each function takes and returns a ``Value`` of float32 or float64 with any number of
lanes. One lane and sixteen get the same instructions, so they give the same bits, on every backend. ``table`` names the
formula of each operation of the loop IR.
"""
