"""What ends a command with a sentence instead of a stack."""


class Failure(Exception):
    """The command can't do what was asked; the message tells the user why, and what to do if there is something."""
