"""`python -m windowpane` is the program `windowpane`."""

from windowpane.cli.main import main

if __name__ == "__main__":
    main()
