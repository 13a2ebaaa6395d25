"""``import torchvision`` finds this file if its folder is on the path, and becomes ``runnel.compat.torchvision``."""

import runnel.compat.torchvision  # noqa: F401
from runnel.compat.installation import become

become(__name__)
