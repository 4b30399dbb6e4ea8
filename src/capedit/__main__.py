"""`python -m capedit` is the command line."""

from capedit.cli import main

main()
