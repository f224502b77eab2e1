"""What a release keeps of the publication that it came from: what was asked for, beside what its guarantee says.

Policy and domain stand in the guarantee. Paths, names of columns, account and vault are whoever publishes', and have no
place here: there are no fields for them.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from sfumato.domain import Domain
from sfumato.errors import InvalidInput
from sfumato.exact import is_whole, written
from sfumato.workload import Workload, workload_from_text

_LONGEST_NAME = 200


@dataclass(frozen=True, kw_only=True)
class Origin:
    """The questions as text, ε as asked for, the bound on a person's records, a mechanism where one was named, and a
    public guess of how many records there are where one was given.
    """

    ask: str
    epsilon: Fraction
    max_per_entity: int | None = None
    mechanism: str | None = None
    records: int | None = None

    @property
    def workload(self) -> Workload:
        """The questions."""
        return workload_from_text(self.ask)

    def spec(self) -> dict[str, Any]:
        """The same as plain data; without a guess as it was before there were any."""
        guess = {} if self.records is None else {"records": self.records}
        return {
            "ask": self.ask,
            "epsilon": str(self.epsilon),
            "max_per_entity": self.max_per_entity,
            "mechanism": self.mechanism,
            **guess,
        }


def origin_from_spec(spec: Any, domain: Domain) -> Origin:
    """What `Origin.spec` said; refused where it is nothing that could be asked of the domain."""
    if not isinstance(spec, dict) or set(spec) - {"records"} != {"ask", "epsilon", "max_per_entity", "mechanism"}:
        raise InvalidInput("the publication of a release has the fields ask, epsilon, max_per_entity and mechanism.")
    bound, mechanism = spec["max_per_entity"], spec["mechanism"]
    if not (bound is None or (is_whole(bound) and bound >= 1)):
        raise InvalidInput("max_per_entity must be a whole number of at least 1.")
    guess = spec.get("records")
    if "records" in spec and not (is_whole(guess) and guess >= 1):
        raise InvalidInput("records must be a whole number of at least 1.")
    if not (mechanism is None or (isinstance(mechanism, str) and len(mechanism) <= _LONGEST_NAME)):
        raise InvalidInput("mechanism must be a name.")
    epsilon = written(spec["epsilon"], "epsilon")
    if epsilon <= 0:
        raise InvalidInput("epsilon must be greater than zero.")
    found = Origin(ask=spec["ask"], epsilon=epsilon, max_per_entity=bound, mechanism=mechanism, records=guess)
    found.workload.check(domain)
    return found
