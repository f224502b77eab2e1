"""Before any data is seen: candidates, their expected errors, the choice, and why.

A plan costs nothing, since nothing here may look at private data: `like=` takes public counts or earlier releases.
"""

from sfumato.planning.means import MeansPlan, plan_means
from sfumato.planning.person_bound import TunedBound, tune_bound
from sfumato.planning.plan import Alternative, Plan
from sfumato.planning.planner import epsilon_for, plan, smallest_epsilon

__all__ = [
    "Alternative",
    "MeansPlan",
    "Plan",
    "TunedBound",
    "epsilon_for",
    "plan",
    "plan_means",
    "smallest_epsilon",
    "tune_bound",
]
