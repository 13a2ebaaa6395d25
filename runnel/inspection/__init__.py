"""What a program is made of and what it costs, for people in a terminal and for tools. Stands on ``compiler`` and runs
nothing unless asked to measure; ``compile`` hands out its :class:`~runnel.inspection.inspection.Inspection`.
"""
