"""The artefact: estimates, their error, the guarantee; answers, files and pictures.

A release holds no secret and needs no data. Everything here is post-processing of what is public already.
"""

from sfumato.release.adjust import Adjusted
from sfumato.release.answer import Answer
from sfumato.release.files import load
from sfumato.release.means import Means, load_means
from sfumato.release.release import Release
from sfumato.release.table import Table

__all__ = ["Adjusted", "Answer", "Means", "Release", "Table", "load", "load_means"]
