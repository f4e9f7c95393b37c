"""Reference pages that are generated from the code: `make docs` writes them, tests/docs/ checks that they are up to date."""
