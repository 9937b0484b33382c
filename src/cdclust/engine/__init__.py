"""The training loop, optimisers, schedules, precision, health and checkpoints.

Nothing here knows the mathematics of a loss or the layout of a run folder.
"""
