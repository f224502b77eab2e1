"""Auditing: is what was built as private as it says? Every check runs on made-up or public data, never on private data.
It asks a mechanism for its form, checks that the mechanism runs so, and computes the loss from the form alone. No class
of a mechanism is known here, nothing private to one is read, and nothing is released or charged.

    audit          a plan, a mechanism or an order statistic; anybody's function; a strategy on paper → Audit
    audit_stream   the budgets of a stream, window by window
    audit_chain    the levels of a gradual release, together
    Audit          the largest loss that was proved or found, beside the promise
    Witness        the neighbours and the event that show it

Three methods, the strongest that fits is taken. "exact": the loss itself, in integers and fractions, for every edge
looked at. "argument": an upper bound on it that was checked on what is built. "statistical": a lower bound at a stated
confidence, from runs on neighbouring databases; it finds mistakes and proves nothing right.

The files, from the bottom: `result`, `record_changes` (which records change, from the policy's definition),
`databases`. In `exact/`: `question`; `shifts` and `flows` (the cheapest change of noise), `additive`; `noisy_number`;
`partition_law`, `two_stage`; `by_form`, which knows the audit of every form; `order_statistics`, `refinement_chains`,
`stream_windows`; `given_strategy`, for what is given on paper. In `statistical/`: `audit_source`, `distinguishers`,
`sampler` (is the noise drawn what its law says), `features`, `outputs` (whatever a function returns), `lower_bound`.
Then `functions`, and `audit`.
"""

from sfumato.auditing.audit import audit
from sfumato.auditing.exact.refinement_chains import audit_chain
from sfumato.auditing.exact.stream_windows import audit_stream
from sfumato.auditing.result import Audit, Witness

__all__ = ["Audit", "Witness", "audit", "audit_chain", "audit_stream"]
