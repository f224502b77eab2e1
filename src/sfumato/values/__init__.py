"""What is counted in the place of records: sums of a value, or distinct people.

Declared and public, like a domain: a value has its bounds and its step, people the number of cells that one of them may
be counted in. Nothing here sees data, and nothing here knows what is hidden.
"""

from __future__ import annotations

from sfumato.values.amounts import Amounts, amounts
from sfumato.values.lattice import Lattice
from sfumato.values.people import People, people
from sfumato.values.written import values_from_spec, values_from_text

Values = Amounts | People

__all__ = ["Amounts", "Lattice", "People", "Values", "amounts", "people", "values_from_spec", "values_from_text"]
