"""Statements: what is not hidden first, nothing that is not known, and no word of a stranger obeyed."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser

import numpy as np
import pytest

import sfumato as sf

NASTY = '</style><script>alert("x")</script>'
LINE = sf.Line(0, 12, cells=12, name="hour")
VOID = {"meta"}


class Page(HTMLParser):
    """Reads a page strictly: every element closed in order, and what is fetched or run noticed."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.open, self.seen, self.attributes, self.words, self.headings, self.links = [], set(), [], [], [], []
        self.ids = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.seen.add(tag)
        self.attributes += attrs
        self.ids += [value for name, value in attrs if name == "id"]
        self.links += [value for name, value in attrs if name in ("href", "src")]
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.words.append(data)
        if self.open and self.open[-1] in ("h1", "h2"):
            self.headings.append(data)


@pytest.fixture
def account(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return sf.Ledger.create("budget.db", epsilon=3, dataset="visits")


def release_under(policy, ledger=None, **options):
    shape = policy.domain.shape
    counts = np.ones(shape, dtype=int)
    return sf.plan(policy, sf.histogram(), epsilon="1/2", **options).publish(counts, ledger=ledger, label="by hour")


def test_what_is_not_hidden_comes_first_and_says_what_is_public(account):
    space = LINE * sf.Categories(["bus", "bike"], name="mode")
    statement = release_under(sf.policy(space, hide=sf.change("mode"), public=["hour"])).statement()
    assert statement.sections[0].heading == "Not hidden"
    first = statement["not-hidden"].items
    assert first[0] == "Nothing is hidden of the hour of a record: no change that is hidden touches it."
    assert any("total number of records is public" in item for item in first)
    assert any("exact number of records for every hour" in item for item in first)
    assert any("A person with several records is hidden less" in item for item in first)


def test_the_promise_in_odds_in_metres_and_as_written(account):
    grid = sf.Grid(bounds=(-74.3, 40.5, -74.2, 40.6), cell="1 km")
    statement = release_under(sf.policy(grid, hide=sf.move("2 km"))).statement()
    told = " ".join(statement["promise"].text)
    assert "moves by less than 2000 m" in told
    assert "odds that an observer gives to two neighbouring datasets by at most a factor 1.65 (ε = 0.5)" in told
    assert ("The relation as it is written", 'move("2000 m", of="place")') in statement["promise"].facts
    assert statement["promise"].sheets[0].rows[0] == ("1 step", "0.5", "a factor 1.65")
    assert statement.figures["guarantee"]["policy"]["relation"] == 'move("2000 m", of="place")'


def test_persons_windows_and_standard_terms(account):
    policy = sf.unbounded(LINE)
    plan = sf.plan(policy, sf.histogram(), epsilon=1, max_per_entity=3)
    release = plan.publish(sf.Counts(np.ones(12, dtype=int), LINE, max_per_entity=3))
    statement = release.statement()
    assert ("Most records counted of a person", "3") in statement["unit"].facts
    assert "the counted records of one person, at most 3, change, all at once" in statement["promise"].text[0]
    assert statement["unit"].text[0].startswith("One person, of whom at most 3 records are counted.")
    assert any(item.startswith("Add/remove (each counted record of one person") for item in statement["standard"].items)
    assert "person, at most 3 counted of each person." in dict(statement["nist"].facts)["What is the unit of privacy?"]
    stream = sf.Stream(policy, sf.histogram(), epsilon=1, window=7, ledger=account, name="daily", allocation="even")
    step = stream.publish(1, np.ones(12, dtype=int)).statement(ledger=account)
    assert ("Every window of time", "7 steps, ε = 1 for all in it") in step["promise"].facts
    assert step["account"].text == ("This release is a step of its stream 'daily'.",)
    assert step["streams"].sheets[0].rows[0][:2] == ("'daily'", "ε = 1 for every window of 7 steps")


def test_the_account_says_what_is_spent_and_left_and_whether_the_release_is_in_it(account):
    policy = sf.threshold(LINE, theta=1)
    paid, unpaid = release_under(policy, account), release_under(policy)
    statement = paid.statement(ledger=account)
    facts = dict(statement["account"].facts)
    said = "This release was charged to it: ε = 0.5 in one line, as hiding that one record moves by at most 1 cell"
    assert statement["account"].text[0].startswith(said)
    assert facts["Spent"].startswith("ε = 0.5: the odds that an observer gives")
    assert facts["Left"] == "ε = 2.5"
    assert statement.figures["account"]["left"] == "5/2"
    assert statement["account"].sheets[0].rows[1][1:] == (f"release {paid.id[:12]}", "by hour", "0.5", "1", "0.5")
    assert unpaid.statement(ledger=account)["account"].text[0].startswith("THIS RELEASE WAS NOT CHARGED TO IT")
    assert "No ledger was at hand" in unpaid.statement()["account"].text[0]


def test_what_was_left_out_before_counting_is_said(account):
    plan = sf.plan(sf.unbounded(LINE), sf.histogram(), epsilon="1/2")
    release = plan.publish(np.ones(12, dtype=int), ledger=account, filtered=["mode"])
    assert "of records chosen by 'mode'" in release.statement(ledger=account)["account"].text[0]


def test_accounts_add_up_only_after_exchange_into_one_relation(account):
    hide = sf.move("2", of="hour")
    for name, epsilon in (("a", 1), ("b", 2)):
        ledger = sf.Ledger.create("all.db", epsilon=epsilon, dataset=name, hide=hide)
        release_under(sf.policy(LINE, hide=hide), ledger)
    sf.Ledger.create("all.db", epsilon=5, dataset="c", hide=sf.presence(), unit="record")
    sf.Ledger.create("all.db", epsilon=7, dataset="d", unit="record")
    sf.Ledger.create("all.db", epsilon=7, dataset="e", unit="record")
    told = sf.Ledger("all.db", dataset="a").statement()["accounts"].text
    assert any(
        line.startswith("'a', 'b', in the relation of 'a' (one record") and "ε = 1 spent so far, 3 at most" in line
        for line in told
    )
    assert sum("stands by itself" in line for line in told) == 3  # nothing is known of what d and e will hide
    assert "'c' stands by itself: its relation cannot be exchanged for another one, and no sum is given." in told


def test_what_an_account_does_not_hide_comes_first(account):
    ledger = sf.Ledger.create("all.db", epsilon=1, hide=sf.move("500 m"), fixed=["mode", "day"])
    first = ledger.statement().sections[0]
    assert first.heading == "Not hidden"
    assert first.items[0] == "Nothing is hidden of the day and mode of a record, which is declared fixed."
    assert first.items[1].startswith("That a record is in the data is not hidden")
    hidden = sf.Ledger.create("all.db", epsilon=1, hide=sf.presence(), dataset="b").statement()["not-hidden"].items
    assert not any("in the data is not hidden" in item for item in hidden)


def test_policies_are_exchanged_at_their_price(account):
    fine, coarse = sf.threshold(LINE, theta=1), sf.threshold(LINE, theta=3)
    for name, policy in (("far", coarse), ("near", fine)):
        sf.Ledger.create("all.db", epsilon=2, dataset=name, policy=policy, unit="record")
    told = " ".join(sf.Ledger("all.db", dataset="far").statement()["accounts"].text)
    assert "'far', 'near', in the relation of 'far'" in told
    assert "('near' at 3 times its ε): ε = 0 spent so far, 8 at most" in told  # 2 + 3 · 2


def test_streams_stand_beside_the_account_and_add_up_where_they_can_be_exchanged(account):
    near, far = sf.threshold(LINE, theta=1), sf.threshold(LINE, theta=2)
    release_under(far, account)
    sf.Stream(near, sf.histogram(), epsilon="1/4", window=7, ledger=account, name="daily", allocation="even")
    sf.Stream(
        sf.threshold(sf.Line(0, 1, cells=3), theta=1),
        sf.histogram(),
        epsilon=1,
        window=7,
        ledger=account,
        name="elsewhere",
        allocation="even",
    )
    told = account.statement()["streams"]
    assert "is hidden at ε = 3.5 at most" in " ".join(told.text)  # 3 + 2 · 1/4
    assert "The others stand side by side with it" in " ".join(told.text)
    assert [row[-1] for row in told.sheets[0].rows] == ["2 × ε", "cannot be exchanged"]


def test_audits_are_shown_beside_the_promise(account):
    plan = sf.plan(sf.threshold(sf.Line(0, 4, cells=4), theta=1), sf.histogram(), epsilon=1)
    statement = plan.publish(np.ones(4, dtype=int)).statement(audit=sf.audit(plan))
    assert statement["audit"].sheets[0].rows[0] == (plan.mechanism.name, "1", "1", "exact", "kept")
    assert statement.figures["audits"][0]["passed"] is True
    assert dict(statement["nist"].facts)["Was it tested?"] == "1 audit attached: every promise was kept."
    with pytest.raises(sf.InvalidInput, match="audit=str is no audit"):
        plan.publish(np.ones(4, dtype=int)).statement(audit=["fine"])


def test_seeded_releases_say_so_before_anything_else(account):
    plan = sf.plan(sf.threshold(LINE, theta=1), sf.histogram(), epsilon=1)
    statement = plan.publish(np.ones(12, dtype=int), source=sf.SeededSource(1)).statement()
    assert statement["not-hidden"].items[0].startswith("NOT PRIVATE")
    assert statement.figures["guarantee"]["private"] is False


@pytest.mark.parametrize(
    "policy, presence, place",
    [
        (sf.unbounded(LINE), "changes the odds by at most a factor 1.65 (ε = 0.5)", None),
        (sf.bounded(LINE), "is not hidden: where a record stands alone", None),
        (sf.threshold(LINE, theta=1), "is not hidden: where a record stands alone", "Coarser facts than a step"),
    ],
    ids=["add/remove", "replace-one", "threshold"],
)
def test_the_three_risks_are_answered_for_the_relation(account, policy, presence, place):
    answers = dict(release_under(policy).statement()["europe"].facts)
    assert list(answers) == ["Singling out", "Linking", "Inference"]
    assert presence in answers["Singling out"]
    assert "many records of one person that follow a pattern" in answers["Linking"]
    assert (place is None) or place in answers["Inference"]
    assert "What holds of everybody in a group stays visible" in answers["Inference"]


def test_the_same_release_and_ledger_give_the_same_bytes(account):
    release = release_under(sf.threshold(LINE, theta=1), account)
    release.save("visits.sfumato")
    again = sf.load("visits.sfumato")
    for form in ("to_html", "to_markdown", "to_json"):
        first, second = (one.statement(ledger=account, facts={"a": "b"}) for one in (release, again))
        assert getattr(first, form)() == getattr(second, form)()
    assert account.statement().to_html() == sf.Ledger("budget.db", dataset="visits").statement().to_html()


def nasty(account):
    space = sf.Categories([NASTY, "[link](http://evil.example)", "| a | b |"], name="mode")
    release = release_under(sf.unbounded(space))
    facts = {NASTY: NASTY, "site": "www.evil.example http://evil.example\u202e\x1b[31m"}
    return release.statement(facts=facts, title=NASTY, ledger=account)


def test_pages_stand_alone_and_obey_no_stranger(account):
    page = Page(nasty(account).to_html())
    assert not page.seen & {"script", "img", "link", "iframe", "object", "embed", "form", "input", "svg", "base"}
    assert all(link.startswith("#") and link[1:] in page.ids for link in page.links)
    assert not [name for name, _ in page.attributes if name.startswith("on") or name == "style"]
    assert ("content", "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'") in [
        *page.attributes
    ]
    shown = " ".join(page.words)
    assert NASTY in shown  # as text, and nothing else
    assert "\u202e" not in shown and "\x1b" not in shown
    assert "url(" not in shown and "@import" not in shown
    assert len(page.ids) == len(set(page.ids))


def test_pages_can_be_read_by_everybody(account):
    text = nasty(account).to_html()
    page = Page(text)
    assert page.headings[1] == "Not hidden"
    assert '<html lang="en">' in text and 'name="viewport"' in text
    assert "prefers-color-scheme: dark" in text and "@media print" in text
    assert text.count("<th scope=") == text.count("<th ")  # every heading of a table says what it heads
    assert text.count("<caption>") == text.count("<table>")


def test_a_notebook_shows_it_and_markdown_is_text_alone(account):
    statement = nasty(account)
    assert statement._repr_html_().startswith("<style>")
    assert "<html" not in statement._repr_html_()
    written = statement.to_markdown()
    assert "<script" not in written.replace("\\<", "")
    assert not re.search(r"(?<!\\)\]\(", written) and not re.search(r"(?<!\\)\bhttp://", written)
    assert "http\\://evil.example" in written and "www\\.evil.example" in written
    rows = [line for line in written.splitlines() if line.startswith("|")]
    assert all(len(re.findall(r"(?<!\\)\|", row)) == len(re.findall(r"(?<!\\)\|", rows[0])) for row in rows[:3])


def test_json_holds_everything(account):
    statement = nasty(account)
    said = json.loads(statement.to_json())
    assert (said["statement"], said["kind"]) == (1, "release")
    assert [one["key"] for one in said["sections"]] == [one.key for one in statement.sections]
    assert said["figures"]["epsilon"] == "1/2"
    assert str(account.place) not in statement.to_json() + statement.to_html()  # no path of a machine


def test_files_by_their_endings(account):
    statement = account.statement("2026.html")
    assert statement.save("2026.md").read_text(encoding="utf-8") == statement.to_markdown()
    assert json.loads(statement.save("2026.json").read_text())["kind"] == "ledger"
    with pytest.raises(sf.InvalidInput, match=r"path='2026.pdf' does not end in .html, .md, .json, or .yaml"):
        statement.save("2026.pdf")


@pytest.mark.parametrize(
    "facts, why",
    [
        (["a"], "must be names with texts"),
        ({"a": 1}, "must be a name and a text that say something"),
        ({" ": "x"}, "must be a name and a text that say something"),
        ({"a": "x" * 20_000}, "is longer than 10,000 characters"),
        ({str(i): "x" for i in range(101)}, "has 101 entries, and at most 100 are taken"),
    ],
)
def test_facts_that_are_none_are_refused(account, facts, why):
    with pytest.raises(sf.InvalidInput, match=why):
        account.statement(facts=facts)
    with pytest.raises(sf.InvalidInput, match="ledger=str is not a ledger"):
        release_under(sf.unbounded(LINE)).statement(ledger="budget.db")


@pytest.mark.parametrize(
    "made",
    [
        lambda: sf.plan(sf.unbounded(LINE), sf.ranges(), epsilon=1, mechanism="sorted").publish(points=np.ones(5)),
        lambda: release_under(sf.graph(LINE, [(0, 1), (2, 3)], publish_component_totals=True)),
        lambda: release_under(sf.within(sf.Grid(bounds=(0, 0, 1, 1), shape=(4, 5)), delta=0.1)),
        lambda: sf.plan(
            sf.unbounded(LINE * sf.Categories(["a", "b"], name="m")),
            sf.marginals("m"),
            epsilon=1,
            mechanism="marginals",
        ).publish(np.ones((12, 2), dtype=int)),
        lambda: release_under(sf.unbounded(LINE), mechanism="dawa"),
    ],
    ids=["points", "parts", "within", "tables", "dawa"],
)
def test_every_kind_of_release_has_a_statement(account, made):
    statement = made().statement()
    assert statement["promise"].text and statement["mechanism"].facts
    Page(statement.to_html())


def test_sums_and_people_are_called_what_they_are():
    """A public sum of fares is no number of records, and a step of a record is many units of a sum."""
    fares = sf.amounts("fare", clip=(0, 10), step=1)
    policy = sf.policy(LINE, hide=sf.move(1), values=fares, public=["fare"])
    sums = sf.plan(policy, sf.histogram(), epsilon=1).publish(np.arange(12)).statement()
    assert sums.figures["units"] is None
    assert dict(sums["published"].facts)["What"].startswith("estimated sums of 'fare', each cut to [0, 10]")
    assert dict(sums["mechanism"].facts)["Spends at most"] == "ε = 1 a step: 10 units of the sums, each at ε = 0.1"
    users = sf.people("user", cells=3)
    plan = sf.plan(sf.unbounded(LINE), sf.histogram(), epsilon=3, values=users)
    people = plan.publish(sf.Counts(np.arange(12), LINE, max_per_entity=3, counted=users)).statement()
    assert dict(people["published"].facts)["What"].startswith("estimated distinct people by 'user'")
    assert dict(people["unit"].facts)["Most cells a person is counted in"] == "3"
