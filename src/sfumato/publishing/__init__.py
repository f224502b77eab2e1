"""The one place where private data enters: check, record, draw, hand out.

1. **Check** everything that can be refused: shapes, types, contribution bounds. No count decides whether a release
   happens; what is refused is what could not be counts at all, and whoever runs the program alone sees it.
2. **Record** the cost in the ledger, durably. A crash after this over-charges, never under-charges.
3. **Draw** the noise, exactly, from the operating system's randomness, and add it in integers.
4. **Hand out** what was computed from the noisy integers alone.
"""

from sfumato.publishing.levels import refine
from sfumato.publishing.means import publish_means
from sfumato.publishing.parts import PartReleases, publish_parts
from sfumato.publishing.publish import publish
from sfumato.publishing.quantile import QuantileAnswer, median, quantile
from sfumato.publishing.until import refine_until

__all__ = [
    "PartReleases",
    "QuantileAnswer",
    "median",
    "publish",
    "publish_means",
    "publish_parts",
    "quantile",
    "refine",
    "refine_until",
]
