"""`python -m rangevote`."""

from rangevote.cli import main

if __name__ == "__main__":
    main()
