"""Settings of every test run: UTC and hypothesis profiles."""

import os
import time

from hypothesis import HealthCheck, settings

os.environ["TZ"] = "UTC"
time.tzset()

# In CI the same commit must pass or fail the same way; at home each run tries new examples.
settings.register_profile(
    "quick",
    max_examples=50,
    deadline=None,
    derandomize=bool(os.environ.get("CI")),
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile("deep", settings.get_profile("quick"), max_examples=1_000, derandomize=False)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "quick"))
