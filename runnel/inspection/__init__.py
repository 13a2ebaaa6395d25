"""Reports on programs and their costs, as text and as data: :class:`~runnel.inspection.inspection.Inspection`.

Only measurements run a program.
"""
