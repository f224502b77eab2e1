"""How the pages become a site: `make docs`."""
