"""What the network sees: random views of images, made in batch, on the device, from a seed.

Nothing here reads files or knows about a network.
"""
