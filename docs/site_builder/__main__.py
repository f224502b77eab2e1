"""Builds the site."""

from site_builder.build import main

main()
