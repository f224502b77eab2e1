"""Order statistics (the median, any quantile) under moves of bounded length: private points in, one cell out.

Private points are cells of a public lattice by then. Nothing here is charged or handed out, and no floating-point noise
is drawn.

    OrderMechanism        the protocol
    ├── InverseSensitivity    "inverse": cells by the number of moves that would make them the answer
    ├── OrderLaplace          "laplace": plain noise of one move's length
    ├── SmoothSensitivity     "smooth", "smooth-pure": noise in proportion to the smooth sensitivity
    └── RankSplit             "ranks": cells by how they split the ranks, the number of points hidden as well
    order_mechanism       one of them by name, or chosen from public figures

The files, from the bottom: `order` (ranks and the points around one), `scored` (cells drawn by a score), `steps` (one
score), `smooth_bound`, then one file a mechanism, then `choice`.
"""

from sfumato.quantiles.base import OrderMechanism
from sfumato.quantiles.choice import METHODS, RANKS, order_mechanism, require_method
from sfumato.quantiles.inverse import InverseSensitivity
from sfumato.quantiles.laplace import OrderLaplace
from sfumato.quantiles.order import rank_of
from sfumato.quantiles.ranks import RankSplit, moving
from sfumato.quantiles.smooth import SmoothSensitivity

__all__ = [
    "METHODS",
    "RANKS",
    "InverseSensitivity",
    "OrderLaplace",
    "OrderMechanism",
    "RankSplit",
    "SmoothSensitivity",
    "moving",
    "order_mechanism",
    "rank_of",
    "require_method",
]
