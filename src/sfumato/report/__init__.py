"""A release for people who have nothing but a browser: one HTML file, and a small picture for notebooks.

What is written here is post-processing of a release, and as private as it. A file asks no server for anything, runs no
script but the one that ships with this version, and carries every name from a stranger as text. Nothing here reads
data, ledgers or vaults, and nothing is written but the file that was asked for.
"""

from sfumato.report.document import html_of, to_html
from sfumato.report.small import small

__all__ = ["html_of", "small", "to_html"]
