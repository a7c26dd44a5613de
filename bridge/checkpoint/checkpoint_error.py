"""The error of a file that is refused."""


class CheckpointError(ValueError):
    """A file that is not what was expected; the message names the file."""
