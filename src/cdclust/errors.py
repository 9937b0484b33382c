"""What can go wrong in a way the user can mend."""


class UserError(Exception):
    """A one-line reason that names the field, the value and what to type instead; the shell prints it and exits 1."""


class UsageError(UserError):
    """A command that could never have worked as typed; the shell exits 2."""
