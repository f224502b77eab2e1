"""Where things can be: a domain is a product of named axes, each cut into finitely many cells.

A domain is public. It is declared by the user, never read off the data, and everything after counting
(policy, workload, mechanism, release) speaks of its cells alone.
"""

from sfumato.domain.areas import Areas
from sfumato.domain.axis import Axis
from sfumato.domain.bins import Bins
from sfumato.domain.cycle import Round
from sfumato.domain.described import domain_from_spec
from sfumato.domain.ground import Ground
from sfumato.domain.hexagons import H3, Hexagons
from sfumato.domain.instants import Instants
from sfumato.domain.interval import Interval
from sfumato.domain.labels import Labels
from sfumato.domain.network import Network, network
from sfumato.domain.ordered import Ordered
from sfumato.domain.places import Places
from sfumato.domain.product import Domain
from sfumato.domain.regions import Regions
from sfumato.domain.roads import Roads
from sfumato.domain.shapes import Categories, Cycle, Grid, Line, Times
from sfumato.domain.timed import Timed

__all__ = [
    "H3",
    "Areas",
    "Axis",
    "Bins",
    "Categories",
    "Cycle",
    "Domain",
    "Grid",
    "Ground",
    "Hexagons",
    "Instants",
    "Interval",
    "Labels",
    "Line",
    "Network",
    "Ordered",
    "Places",
    "Regions",
    "Roads",
    "Round",
    "Timed",
    "Times",
    "domain_from_spec",
    "network",
]
