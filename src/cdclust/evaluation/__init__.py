"""What a finished clustering is worth: scores against labels, and figures that need none.

Nothing here trains a network, and nothing here is used to choose one.
"""
