"""One publication, one file: what is hidden, what will be asked, at which ε, of which cells, and from where to where.

    hide = 'move(0.007)'
    ask = "ranges()"
    epsilon = 1

    [domain.place]
    bounds = [-74.3, 40.5, -73.7, 40.95]
    shape = [64, 64]

The file is TOML. Its public part (policy, questions, ε, unit) may be shown to anybody; the tables `data`, `account`,
`output` and `stream` are whoever publishes'. There is no key for a seed: noise cannot be repeated.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sfumato.counting import Counts, count
from sfumato.domain import Domain
from sfumato.errors import DeclarationWarning, InvalidInput
from sfumato.exact import fraction, positive_fraction, positive_int
from sfumato.ledger import Ledger
from sfumato.policies import Policy, threshold
from sfumato.policies.valued import policy as relation_policy
from sfumato.publication.factors import read_domain, written_domain
from sfumato.publication.settings import Account, Data, Output, Steps
from sfumato.publication.table import EXACT, FLAG, TEXT, TEXTS, WHOLE, Table, read_as, written_as
from sfumato.publication.toml import LONGEST, read_toml, written_toml
from sfumato.relations import Relation, move, relation_from_text
from sfumato.release.origin import Origin
from sfumato.values import values_from_text
from sfumato.vault import Vault
from sfumato.workload import Workload, workload_from_text

if TYPE_CHECKING:
    from sfumato.planning import Plan
    from sfumato.release import Release

SETTINGS = {"data": Data, "account": Account, "output": Output, "stream": Steps}
PUBLIC_KEYS = {
    "hide": TEXT,
    "theta": WHOLE,
    "public": TEXTS,
    "publish_component_totals": FLAG,
    "values": TEXT,
    "ask": TEXT,
    "epsilon": EXACT,
    "max_per_entity": WHOLE,
    "records": WHOLE,
    "mechanism": TEXT,
}


@dataclass(frozen=True, kw_only=True, eq=False)
class Publication:
    """What is published, and how: all that a file says of it. Nothing is read, drawn or charged before `publish`.

    >>> policy = sf.within(sf.Grid(bounds=(0, 0, 1, 1), shape=(8, 8)), delta=0.1)
    >>> publication = sf.Publication(policy=policy, ask=sf.ranges(), epsilon=1)
    >>> print(publication.to_toml())
    hide = "move(0.1)"
    ask = "ranges()"
    epsilon = 1
    <BLANKLINE>
    [domain.place]
    bounds = [0.0, 0.0, 1.0, 1.0]
    shape = [8, 8]
    <BLANKLINE>
    """

    policy: Policy
    ask: Workload
    epsilon: Fraction
    max_per_entity: int | None = None
    mechanism: str | None = None
    expected_records: int | None = None
    """How many records there will be, a public guess: `records` in its file, and of `sf.plan`."""
    data: Data = field(default_factory=Data)
    account: Account = field(default_factory=Account)
    output: Output = field(default_factory=Output)
    stream: Steps = field(default_factory=Steps)
    folder: Path = Path()
    """From where the paths in it lead: the folder of its file."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", positive_fraction(self.epsilon, "epsilon"))
        if self.max_per_entity is not None:
            object.__setattr__(self, "max_per_entity", positive_int(self.max_per_entity, "max_per_entity"))
        if self.expected_records is not None:
            object.__setattr__(self, "expected_records", positive_int(self.expected_records, "records"))

    @property
    def domain(self) -> Domain:
        """The cells."""
        return self.policy.domain

    @property
    def public_part(self) -> Publication:
        """What may be shown to anybody: no paths, no names of columns, no account."""
        return replace(self, data=Data(), account=Account(), output=Output(), stream=Steps(), folder=Path())

    @property
    def origin(self) -> Origin | None:
        """What a release carries of it; None where its questions stay in Python."""
        try:
            ask = self.ask.to_text()
        except InvalidInput:
            return None
        return Origin(
            ask=ask,
            epsilon=self.epsilon,
            max_per_entity=self.max_per_entity,
            mechanism=self.mechanism,
            records=self.expected_records,
        )

    def plan(self) -> Plan:
        """The plan that it asks for. Sees no data and costs nothing."""
        from sfumato.planning import plan  # the door to the mechanisms

        made = plan(
            self.policy,
            self.ask,
            self.epsilon,
            mechanism=self.mechanism,
            max_per_entity=self.max_per_entity,
            records=self.expected_records,
        )
        return replace(made, publication=self.public_part)

    def count(self, data: Any = None, *, progress: bool = False, tables: Workload | None = None) -> Counts:
        """The private counts of the records: of `data`, or of what its file names; with `tables`, of these alone."""
        columns = self.data.columns
        return count(
            self.records(data),
            self.domain,
            columns=columns,
            entity=self.data.entity,
            max_per_entity=None if self.policy.covers_persons else self.max_per_entity,
            outside=self.data.outside or "clamp",  # type: ignore[arg-type]  # one of two, as was checked
            policy=self.policy,
            tables=tables,
            values=self.policy.values,
            progress=progress,
        )

    def records(self, data: Any = None) -> Any:
        """The data given, or the place that the file names."""
        if data is not None:
            return data
        if self.data.path is None:
            raise InvalidInput("the publication names no data. Nothing was counted. Give them, or path under [data].")
        return self.place(self.data.path)

    def ledger(self) -> Ledger | None:
        """The account that it names, opened; None where it names none."""
        if self.account.ledger is None:
            return None
        return Ledger(self.place(self.account.ledger), dataset=self.account.dataset or "default")

    def vault(self) -> Vault | None:
        """Where its noise is kept, if it is."""
        if self.output.vault is None:
            return None
        return Vault(self.place(self.output.vault), None if self.output.key is None else self.place(self.output.key))

    def publish(self, data: Any = None) -> Release:
        """Count, charge the account that it names, draw, hand out. What comes back is in memory: `release.save` it.

        >>> place = sf.Grid(bounds=(0, 0, 1, 1), shape=(8, 8))
        >>> publication = sf.Publication(policy=sf.bounded(place), ask=sf.histogram(), epsilon=1)
        >>> with open("visits.csv", "w") as file:
        ...     _ = file.write("x,y\\n0.5,0.5\\n0.6,0.4\\n")
        >>> publication.publish("visits.csv").total
        2
        """
        plan, account = self.plan(), self.ledger()
        return plan.publish(self.count(data), ledger=account, vault=self.vault(), label=self.account.label)

    def place(self, path: str) -> str:
        """A path as it is meant: from the folder of the file, unless it is an address or begins at the root."""
        return path if "://" in path or self.folder == Path() else str(self.folder / path)

    # ------------------------------------------------------------------ files

    def to_toml(self) -> str:
        """The file that says all this; `sf.load_publication` reads it."""
        return written_toml(self._tables())

    @classmethod
    def from_toml(cls, text: str | bytes, *, name: str = "publication", folder: Path | str = "") -> Publication:
        """The publication that a text in TOML describes; `name` is for messages."""
        content = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text
        return cls.from_tables(read_toml(content, name), name=name, folder=folder)

    @classmethod
    def from_tables(cls, tables: Mapping[str, Any], *, name: str, folder: Path | str = "") -> Publication:
        """The same from the tables of the file."""
        top = Table(f"{name}:", tables)
        top.known((*PUBLIC_KEYS, "domain", *SETTINGS))
        epsilon = top.take("epsilon", EXACT)
        ask = top.take("ask", TEXT)
        per_entity = top.take("max_per_entity", WHOLE, None)
        settings: dict[str, Any] = {part: read_as(kind, top.inner(part)) for part, kind in SETTINGS.items()}
        domain = read_domain(top.inner("domain"))
        made: dict[str, Any] = {
            "policy": _policy(domain, top),
            "ask": top.said(lambda: workload_from_text(ask), "ask"),
            "epsilon": top.said(lambda: positive_fraction(epsilon, "epsilon")),
            "max_per_entity": per_entity,
            "mechanism": top.take("mechanism", TEXT, None),
            "expected_records": top.take("records", WHOLE, None),
        }
        top.said(lambda: made["ask"].check(domain), "ask")
        return top.said(lambda: cls(**made, **settings, folder=Path(folder)))

    def _tables(self) -> dict[str, Any]:
        tables: dict[str, Any] = {**_hidden(self.policy), "ask": self.ask.to_text(), "epsilon": _exact(self.epsilon)}
        tables |= {"max_per_entity": self.max_per_entity} if self.max_per_entity is not None else {}
        tables |= {"records": self.expected_records} if self.expected_records is not None else {}
        tables |= {"mechanism": self.mechanism} if self.mechanism is not None else {}
        tables["domain"] = written_domain(self.domain)
        settings = {name: written_as(getattr(self, name)) for name in SETTINGS}
        return tables | {name: told for name, told in settings.items() if told}


def load_publication(path: str | Path) -> Publication:
    """The publication that a file describes. Paths in it lead from the folder of the file.

    >>> plan = sf.plan(sf.bounded(sf.Line(0, 24, cells=24, name="hour")), sf.histogram(), epsilon=1)
    >>> with open("hours.toml", "w") as file:
    ...     _ = file.write(plan.to_toml())
    >>> sf.load_publication("hours.toml").plan().policy == plan.policy
    True
    """
    return Publication.from_tables(load_tables(path), name=Path(path).name, folder=Path(path).parent)


def load_tables(path: str | Path) -> dict[str, Any]:
    """The tables of a file, unchecked."""
    with Path(path).open("rb") as file:
        content = file.read(LONGEST + 1)  # and no more, whatever it is
    return read_toml(content, Path(path).name)


def _policy(domain: Domain, top: Table) -> Policy:
    """What is hidden: by a relation, or by a number of cells."""
    public = top.take("public", TEXTS, [])
    totals = top.take("publish_component_totals", FLAG, False)
    said = top.take("values", TEXT, None)
    values = None if said is None else top.said(lambda: values_from_text(said), "values")
    if ("hide" in top.given) == ("theta" in top.given):
        top.refuse("give hide, such as hide = 'move(0.007)', or theta, a number of cells: one of the two.")
    if "theta" in top.given:
        theta = top.take("theta", WHOLE)
        if public or totals or values is not None:
            top.refuse("public, publish_component_totals and values go with hide, and theta is given. Leave them out.")
        return top.said(lambda: threshold(domain, theta), "theta")
    text = top.take("hide", TEXT)
    hide = top.said(lambda: relation_from_text(text), "hide")
    keys = {"hide": hide, "public": public, "publish_component_totals": totals, "values": values}
    return top.said(lambda: relation_policy(domain, **keys), "hide")


def _hidden(policy: Policy) -> dict[str, Any]:
    """The keys that say what a policy hides, where a file can."""
    told: dict[str, Any] = {}
    again: Policy | None = None
    hide = _relation(policy)
    if hide is not None:
        totals = policy.arguments.get("publish_component_totals") is True
        told = {"hide": hide.to_text()}
        public = policy.public if policy.values is None else policy.unchanged
        told |= {"public": list(public)} if public else {}
        told |= {"publish_component_totals": True} if totals else {}
        told |= {} if policy.values is None else {"values": policy.values.to_text()}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeclarationWarning)  # it was said when the policy was built
            again = relation_policy(
                policy.domain, hide=hide, public=public, publish_component_totals=totals, values=policy.values
            )
    elif policy.name == "threshold":
        told = {"theta": policy.arguments["theta"]}
        again = threshold(policy.domain, policy.arguments["theta"])
    if again != policy:
        raise InvalidInput(
            f"the policy {policy.name!r} of this domain cannot be written to a file: it is neither what a relation "
            "hides there nor a number of cells. Nothing was written."
        )
    return told


def _relation(policy: Policy) -> Relation | None:
    """The relation that a file names; the boundary of a domain is named as such, where the policy was."""
    if policy.name != "within":
        return policy.relation
    told = policy.arguments
    return move(Fraction(told["delta"]), metric=told["metric"], sources=told.get("sources"))


def _exact(value: Fraction) -> int | float | str:
    """A number as TOML has it where that is exact, else as text."""
    if value.denominator == 1 and value < 1 << 53:
        return int(value)
    return float(value) if fraction(float(value), "epsilon") == value else str(value)
