"""Run the command line: ``python -m bridge``."""

from bridge.cli import main

main()
