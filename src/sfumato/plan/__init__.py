"""Before any data is seen: candidates, their expected errors, the choice, and why."""

from sfumato.plan.plan import Alternative, Plan
from sfumato.plan.planner import epsilon_for, plan, smallest_epsilon

__all__ = ["Alternative", "Plan", "epsilon_for", "plan", "smallest_epsilon"]
