"""`python -m bayplan` runs the program `bayplan`."""

from __future__ import annotations

from bayplan.cli.main import main

if __name__ == "__main__":
    main()
