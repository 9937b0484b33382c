"""Backbones, the head that makes z, the momentum twin and the queue.

Nothing here knows about a loss.
"""
