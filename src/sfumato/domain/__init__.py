"""Where things can be: a domain is a product of named axes, each cut into finitely many cells.

A domain is public. It is declared by the user, never read off the data, and everything after counting
(policy, workload, mechanism, release) speaks of its cells alone.
"""

from sfumato.domain.axis import Axis
from sfumato.domain.interval import Interval
from sfumato.domain.labels import Labels
from sfumato.domain.product import Domain
from sfumato.domain.shapes import Categories, Grid, Line, domain_from_spec

__all__ = ["Axis", "Categories", "Domain", "Grid", "Interval", "Labels", "Line", "domain_from_spec"]
