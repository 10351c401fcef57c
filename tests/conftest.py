"""What all tests share: the hypothesis profiles."""

import os

from hypothesis import HealthCheck, settings

# "ci" finds the same examples in every run and never fails because a machine is slow.
# "long" is for sweeps: HYPOTHESIS_PROFILE=long pytest
settings.register_profile(
    "ci",
    deadline=None,
    derandomize=True,
    max_examples=40,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile("long", settings.get_profile("ci"), derandomize=False, max_examples=1000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))
