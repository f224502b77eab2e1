"""Policies from their descriptions in files. The names are a closed list, and nothing is imported by name."""

from __future__ import annotations

from typing import Any

import numpy as np

from sfumato.domain import domain_from_spec
from sfumato.errors import FileFormatError
from sfumato.exact import written
from sfumato.policies.builders import bounded, graph, threshold, unbounded
from sfumato.policies.policy import Policy
from sfumato.policies.valued import policy
from sfumato.policies.within import built_within
from sfumato.relations import relation_from_spec
from sfumato.values import values_from_spec


def policy_from_spec(spec: dict[str, Any]) -> Policy:
    """The policy that `Policy.spec()` described. Only the names below are known; nothing is imported.

    The description is not trusted. What reading it costs follows from its length, and from the number of its cells
    where moves are told apart; cells near a source, distances and sensitivities are found when they are asked for.
    """
    try:
        arguments = {k: v for k, v in spec.items() if k not in ("name", "domain")}
        domain = domain_from_spec(spec["domain"])
        name = spec["name"]
        if name in ("bounded", "unbounded") and not arguments:
            return bounded(domain) if name == "bounded" else unbounded(domain)
        if name == "threshold":
            return threshold(domain, **arguments)
        if name == "within":
            return built_within(domain, written(arguments.pop("delta"), "delta"), **arguments)
        if name == "relation":
            return policy(
                domain,
                hide=relation_from_spec(arguments.pop("hide")),
                public=_texts(arguments.pop("public")),
                publish_component_totals=arguments.pop("publish_component_totals") is True,
            )
        if name == "values":
            return policy(
                domain,
                hide=relation_from_spec(arguments.pop("hide")),
                public=_texts(arguments.pop("public")),
                publish_component_totals=arguments.pop("publish_component_totals") is True,
                values=values_from_spec(arguments.pop("values")),
            )
        if name == "graph":
            return graph(domain, np.asarray(arguments.pop("edges")), **arguments)
    except (ArithmeticError, AttributeError, LookupError, MemoryError, RecursionError, TypeError, ValueError) as error:
        raise FileFormatError("the description of the policy is damaged.") from error
    raise FileFormatError(f"the policy {name!r} is not known to this version of sfumato.")


def _texts(listed: Any) -> list[str]:
    if not isinstance(listed, list) or not all(isinstance(name, str) for name in listed):
        raise TypeError("public")
    return listed
