"""The ``runnel`` command."""

from runnel.compile.boundary import set_observed

set_observed(__name__, True)
