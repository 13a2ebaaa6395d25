"""``python -m runnel.cli`` is the ``runnel`` command."""

import sys

from runnel.cli.main import main

sys.exit(main())
