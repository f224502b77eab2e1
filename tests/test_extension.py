"""A new operator and a new mechanism, in this file and by one call, walk the whole way with no other change."""

import numpy as np
import pytest
from release.coverage_oracle import Law, boxes, moved_by_noise

import sfumato as sf
from sfumato.linear import Operator
from sfumato.mechanism import VertexMechanism, registered


class WithTotal(Operator):
    """Every cell, and the total with a weight: (AᵀA)⁻¹ = I - k·11ᵀ with k = w²/(1 + n·w²)."""

    def __init__(self, n, weight):
        self.cols, self.rows, self.weight, self.k = n, n + 1, weight, weight**2 / (1 + n * weight**2)

    def forward(self, x):
        return np.concatenate([x, self.weight * x.sum(axis=-1, keepdims=True)], axis=-1)

    def transpose(self, y):
        return y[..., :-1] + self.weight * y[..., -1:]

    def _solved(self, x):
        return x - self.k * x.sum(axis=-1, keepdims=True)

    def pinv(self, y):
        return self._solved(self.transpose(y))

    def pinv_transpose(self, q):
        return self.forward(self._solved(q))


def with_total(policy, epsilon, weight=1):
    """Noise on every count and on the total."""
    if policy.domain.ndim > 1:
        raise sf.InvalidInput("mechanism='with-total' is for lines. Use mechanism='identity'.")
    made, options = (WithTotal(policy.domain.size, weight),), {"weight": weight}
    return VertexMechanism(name="with-total", policy=policy, epsilon=epsilon, factors=made, options=options)


@pytest.fixture(autouse=True)
def added():
    with registered():
        sf.register("with-total", with_total, candidates=lambda policy, workload: [{"weight": w} for w in (1, 2)])
        yield
    assert "with-total" not in sf.mechanisms()


def test_a_mechanism_of_ones_own_goes_the_whole_way(tmp_path):
    line = sf.Line(0, 70, cells=70)
    rows = np.concatenate([np.eye(70), np.ones((140, 70))])  # the total counts twice what all cells do
    plan = sf.plan(sf.unbounded(line), sf.queries(rows), epsilon=0.5)
    assert plan.mechanism.name == "with-total"  # better than all others here, and weighed against them
    assert {"identity", "with-total", "hierarchy"} <= {other.name for other in plan.alternatives}
    assert sf.plan(sf.unbounded(line), sf.histogram(), epsilon=0.5).mechanism.name == "identity"
    assert sf.mechanisms()[-1] == "with-total"
    felt = moved_by_noise(plan.mechanism)
    exact = sum(law.variance * ((rows @ moves) ** 2).sum(axis=1).mean() for moves, law in felt)
    assert plan.expected_error == pytest.approx(exact)

    ledger, vault = sf.Ledger.create(tmp_path / "b.db", epsilon=2), sf.Vault(tmp_path / "v", key=tmp_path / "k")
    release = plan.publish(np.arange(70), ledger=ledger, vault=vault)
    better = release.refine(epsilon=1, ledger=ledger, vault=vault)
    assert (ledger.spent, better.guarantee.epsilon) == (1, 1)
    again = sf.load(better.save(tmp_path / "r.sfumato"))
    assert np.array_equal(again.counts, better.counts)
    low, high = np.array([[0.0], [1], [0], [2.5]]), np.array([[1.0], [50], [70], [4]])
    for one in (release, again):  # the exact law of every answer, by nothing that intervals use
        answers, felt = one.answer(np.concatenate([low, high], axis=1), cut="proportion"), moved_by_noise(one.mechanism)
        for i, q in enumerate(boxes((70,), low, high)):
            assert (
                Law([(q @ moves, law) for moves, law in felt]).holds(float((answers.high - answers.value)[i])) >= 0.95
            )
    found = sf.audit(plan, method="exact")
    assert found.passed and found.method == "exact" and found.epsilon == pytest.approx(0.5)
