"""Vector mathematics: exp, log, tanh and their kin as straight-line LLVM text, one file per family.

Each function takes and returns a ``Value`` of float32 or float64 with any number of
lanes. One lane and sixteen get the same instructions, so they give the same bits. ``codegen.scalars`` calls them.
"""
