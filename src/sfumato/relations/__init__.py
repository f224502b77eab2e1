"""What is hidden, said once for all maps, tables and medians of a dataset: relations between records.

A relation knows names and distances, and no cells: `sfumato.policies` sees it through a domain. It is public, declared
by the user, and never read off the data.
"""

from sfumato.domain.axis import METRES, OWN, SECONDS
from sfumato.relations.lengths import Length
from sfumato.relations.maps import map_digest
from sfumato.relations.record import Record, record_from_spec
from sfumato.relations.relation import (
    ANYTHING,
    CHANGES,
    PRESENCE,
    Relation,
    Term,
    adjacent,
    anything,
    change,
    move,
    presence,
    relation_from_spec,
)
from sfumato.relations.rules import BOUNDARY, QUEEN, ROAD, ROOK, Adjacent, Change, Move, Rule
from sfumato.relations.written import relation_from_text

__all__ = [
    "ANYTHING",
    "BOUNDARY",
    "CHANGES",
    "METRES",
    "OWN",
    "PRESENCE",
    "QUEEN",
    "ROAD",
    "ROOK",
    "SECONDS",
    "Adjacent",
    "Change",
    "Length",
    "Move",
    "Record",
    "Relation",
    "Rule",
    "Term",
    "adjacent",
    "anything",
    "change",
    "map_digest",
    "move",
    "presence",
    "record_from_spec",
    "relation_from_spec",
    "relation_from_text",
]
