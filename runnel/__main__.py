"""``python -m runnel``: the ``runnel`` command."""

from runnel.cli.main import main

if __name__ == "__main__":
    raise SystemExit(main())
