"""Reports on programs and their costs, as text and as data. Nothing runs except for measurements; ``compile`` returns
the :class:`~runnel.inspection.inspection.Inspection` of a program.
"""
