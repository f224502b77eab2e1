"""Polygons against regions, and against elsewhere, which is all that lies in none.

**Elsewhere** begins at the segments that one region alone has. A part of a polygon whose interior meets none of these
lies wholly in elsewhere, or wholly in regions; one point of it says which. A segment that is made up of segments of
other regions, where corners of theirs lie upon it, has them behind it and no elsewhere.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from sfumato._types import Floats, Integers
from sfumato.domain.cutting import Cut, cut_by, needed, turned_copies
from sfumato.domain.geometries import geometries
from sfumato.domain.outlines import Outlines

_SNAP = 1e-9
"""Degrees, a tenth of a millimetre: what a transformation rounds."""


@dataclass(frozen=True, eq=False)
class Mosaic:
    """Regions as shapes that can be looked up, and the segments behind which no region is known."""

    shapes: Any
    tree: Any
    corners: Floats
    rims: Any
    owners: Integers
    rim_tree: Any

    @classmethod
    def of(cls, outlines: Outlines) -> Mosaic:
        """Made of the outlines."""
        shapely = needed()
        shapes = geometries(outlines, "An answer for a polygon")
        segments, number, region = outlines.borders()
        alone = np.bincount(number, minlength=len(segments)) == 1
        owner = np.zeros(len(segments), np.int64)
        owner[number] = region
        rims = shapely.linestrings(segments[alone].reshape(-1, 2, 2))
        corners = np.unique(outlines.points, axis=0)
        return cls(shapes, shapely.STRtree(shapes), corners, rims, owner[alone], shapely.STRtree(rims))

    def cut_by(self, polygon: Any, *, turns: bool) -> Cut:
        """The regions that a polygon holds and cuts."""
        copies = [polygon]
        if turns:
            copies = turned_copies(polygon, float(self.corners[:, 0].min()), float(self.corners[:, 0].max()))
        parts = []
        for copy in copies:
            near = np.sort(self.tree.query(copy))
            parts.append(cut_by(copy, self.shapes[near], near))
        return Cut.joined(parts)

    def crosses_rim(self, polygon: Any, *, turns: bool) -> bool:
        """Whether the interior of a polygon meets a segment that has elsewhere behind it."""
        shapely = needed()
        copies = [polygon]
        if turns:
            copies = turned_copies(polygon, float(self.corners[:, 0].min()), float(self.corners[:, 0].max()))
        for copy in copies:
            shapely.prepare(copy)
            at = self.rim_tree.query(copy, predicate="intersects")
            at = at[~shapely.touches(copy, self.rims[at])]
            if any(not self._has_others_behind(int(one)) for one in at):
                return True
        return False

    def _has_others_behind(self, rim: int) -> bool:
        """Whether segments of other regions make up a segment."""
        shapely = needed()
        near = self.rim_tree.query(self.rims[rim], predicate="intersects")
        near = near[self.owners[near] != self.owners[rim]]
        return bool(len(near)) and bool(shapely.covers(shapely.multilinestrings(self.rims[near]), self.rims[rim]))

    def snapped(self, polygon: Any) -> Any:
        """A polygon that was transformed, with its corners on those of regions where rounding has moved them off."""
        from scipy.spatial import cKDTree

        shapely = needed()
        points = shapely.get_coordinates(polygon)
        far, which = cKDTree(self.corners).query(points, distance_upper_bound=_SNAP)
        near = np.isfinite(far)
        points[near] = self.corners[which[near]]
        found = shapely.set_coordinates(shapely.transform(polygon, lambda same: same), points)
        return found if shapely.is_valid(found) else polygon
