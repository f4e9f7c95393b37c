"""`python -m lake.cli`: the same as the `lakejoin` command."""

from lake.cli.app import main

if __name__ == "__main__":
    main()
