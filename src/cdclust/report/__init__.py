"""Results as pictures.

Nothing here computes a figure: it draws what a run left.
"""
