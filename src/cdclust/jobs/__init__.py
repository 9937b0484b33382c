"""What a command does, from source to run folder. The shell's and Python's front doors call these.

Nothing here parses arguments or prints.
"""
