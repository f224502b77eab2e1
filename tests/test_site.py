"""The site: every page in its place, tutorials that run, notebooks that are the same pages, nothing from elsewhere."""

from __future__ import annotations

import json

import pytest
from site_builder import build, nav, reference, tutorials
from site_builder.blocks import blocks, run
from site_builder.doctests import fenced

PAGE = """# A page

Text.

```python
print("said")
open("made.png", "wb").close()
```

More text.

```sh
echo typed
```
"""


def test_every_page_has_its_place_and_every_public_name_its_page():
    assert nav.flat()
    assert {name for names in reference.public_names().values() for name in names}
    listed = nav.TUTORIALS.split()
    assert sorted(listed) == [path.stem for path in tutorials.tutorials()]
    index = (tutorials.TUTORIALS / "index.md").read_text(encoding="utf-8")
    for name in listed:
        assert f"({name}.md)" in index, f"docs/tutorials/index.md does not list {name}"


def test_a_page_without_a_place_is_refused(monkeypatch):
    monkeypatch.setattr(nav, "GUIDES", nav.GUIDES.replace("hiding ", ""))
    with pytest.raises(ValueError, match="not so hiding"):
        nav.flat()


def test_a_public_name_without_a_page_is_refused(monkeypatch):
    monkeypatch.setitem(reference.GROUPS, "counting", ("Counting", "count"))
    with pytest.raises(ValueError, match="Counts"):
        reference.public_names()


def test_what_a_block_shows_stands_below_it(tmp_path):
    page, folder = tmp_path / "page.md", tmp_path / "page"
    page.write_text(PAGE, encoding="utf-8")
    folder.mkdir()
    text = tutorials.rendered(page, folder)
    said, drawn, more, typed = (text.index(part) for part in ("\nsaid\n", "(page/made.png)", "More text", "\ntyped\n"))
    assert said < drawn < more < typed


@pytest.mark.parametrize("code", ["```python\n1 / 0\n```\n", "```sh\nfalse\n```\n", "```ruby\n1\n```\n"])
def test_what_does_not_run_keeps_the_site_from_being_built(code, tmp_path):
    with pytest.raises((ZeroDivisionError, RuntimeError, ValueError)):
        list(run(f"# A page\n\n{code}", "page.md", tmp_path))


def test_what_needs_a_package_runs_where_it_is_and_says_so_where_it_is_not(tmp_path):
    page = "<!-- needs: {} -->\n```python\nprint('it ran')\n```\n"
    said = [
        shown.text
        for name in ("numpy", "no_such_package", "no.such")
        for _, shown in run(page.format(name), "p", tmp_path)
    ]
    assert said == [
        "it ran\n",
        *(f"(not run here: {name} is not installed)" for name in ("no_such_package", "no.such")),
    ]


def test_a_warning_in_a_tutorial_is_an_error(tmp_path):
    with pytest.raises(UserWarning, match="careful"):
        list(run('```python\nimport warnings\nwarnings.warn("careful")\n```\n', "page.md", tmp_path))


@pytest.mark.slow  # data is made, counted and published: seconds
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of other libraries
@pytest.mark.parametrize("path", [*tutorials.tutorials(), *tutorials.comparisons()], ids=lambda path: path.stem)
def test_a_tutorial_runs_and_shows_something(path, tmp_path):
    shown = [shown for _, shown in run(path.read_text(encoding="utf-8"), path.name, tmp_path)]
    assert any(part.text for part in shown)


@pytest.mark.parametrize("path", tutorials.tutorials(), ids=lambda path: path.stem)
def test_the_notebook_of_a_tutorial_is_the_same_page(path):
    kept = (tutorials.NOTEBOOKS / f"{path.stem}.ipynb").read_text(encoding="utf-8")
    assert kept == tutorials.notebook(path), "make it anew: PYTHONPATH=docs python -m site_builder.tutorials"
    cells = [cell for cell in json.loads(kept)["cells"] if cell["cell_type"] == "code"]
    run_in_page = [block for block in blocks(path.read_text(encoding="utf-8")) if block.language in ("python", "sh")]
    assert len(cells) == len(run_in_page)


def test_no_notebook_is_left_over():
    assert {path.stem for path in tutorials.NOTEBOOKS.glob("*.ipynb")} == {path.stem for path in tutorials.tutorials()}


def test_examples_in_docstrings_are_code():
    assert fenced("A.\n\n>>> 1 + 1\n2\n\nB.") == "A.\n\n```pycon\n>>> 1 + 1\n2\n```\n\nB."
    assert fenced("A.\n\n>>> 1") == "A.\n\n```pycon\n>>> 1\n```"
    assert fenced("No example.") == "No example."


def test_what_is_fetched_from_elsewhere_or_not_there_is_found(tmp_path):
    (tmp_path / "page.html").write_text(
        '<a href="gone.html"></a><a href="#top"></a><a href="https://example.org"></a>'
        '<script src="https://example.org/x.js"></script><img src="gone.png">',
        encoding="utf-8",
    )
    assert list(build.missing(tmp_path)) == [
        "page.html fetches https://example.org/x.js",
        "page.html mentions gone.html, which is not there",
        "page.html mentions gone.png, which is not there",
    ]


@pytest.mark.slow  # Zensical reads the docstrings of all public names: seconds
def test_the_site_is_built_whole_and_fetches_nothing(tmp_path):
    site = tmp_path / "site"
    build.build(tmp_path / "stage", site, run=False)
    assert list(build.missing(site)) == []
    count = (site / "reference" / "counting.html").read_text(encoding="utf-8")
    assert 'id="count"' in count and "max_per_entity" in count
    assert "iframe-worker" in (site / "index.html").read_text(encoding="utf-8")
    assert (site / "search.js").is_file()
