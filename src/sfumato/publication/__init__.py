"""A publication as one small file that command line, nightly job and page share; and the same as an object."""

from sfumato.publication.publication import Publication, load_publication
from sfumato.publication.settings import Account, Data, Output, Steps

__all__ = ["Account", "Data", "Output", "Publication", "Steps", "load_publication"]
