"""``import torch`` finds this file if its folder is on the path, and becomes ``runnel.compat.torch``."""

import runnel.compat.torch  # noqa: F401
from runnel.compat.installation import become

become(__name__)
