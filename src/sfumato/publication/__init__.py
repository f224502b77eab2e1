"""A publication as one small file that command line, nightly job and page share; and the same as an object.

What is in it is public, and all of it is checked before any data is opened. Nothing is drawn, charged or run here: the
file is read key by key, and what it asks for goes through the doors that Python's callers use.
"""

from sfumato.publication.publication import Publication, load_publication
from sfumato.publication.settings import Account, Data, Output, Steps

__all__ = ["Account", "Data", "Output", "Publication", "Steps", "load_publication"]
