"""What an audit says, in plain words and plain data."""

from __future__ import annotations

import json
import math
from fractions import Fraction

import pytest

from sfumato.auditing import Audit, Witness
from sfumato.errors import AuditFailed

ONE = Fraction(1)


def test_a_broken_promise_is_loud():
    found = Audit(
        subject="edges",
        promised=ONE,
        epsilon=math.inf,
        method="exact",
        witness=Witness(edge=(2, -1), databases=((0,) * 14, (1,) * 14), event="it shows"),
    )
    assert not found
    with pytest.raises(AuditFailed) as failure:
        found.require()
    assert str(failure.value) == (
        "edges BREAKS its promise of ε = 1: its loss is infinite.\n"
        "Method     exact: the loss itself, in whole numbers and fractions.\n"
        "Witness    a record between cell 2 and ⊥; it shows; [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, …] and "
        "[1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, …]"
    )
    assert isinstance(failure.value, AssertionError)
    assert json.loads(json.dumps(found.to_dict()))["epsilon"] == "inf"
