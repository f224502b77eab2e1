"""The statement: one page that says what was published and promised, for auditors, regulators and the people counted.

    Statement             sections of words, figures for programs; HTML that prints, Markdown, JSON
    statement_of_release  from a release, and its account where one is at hand
    statement_of_ledger   from a ledger: an account's extract, its streams, and all accounts beside it

Made from releases and ledgers alone: no data is opened, nothing is computed that depends on private values, and no path
of the machine enters. What only the publisher knows (a name, a purpose) is given as facts and marked as theirs. Text
may come from strangers' files: it is shown, and never obeyed by a page, a table or a terminal.
"""

from sfumato.statement.of_ledger import statement_of_ledger
from sfumato.statement.of_release import statement_of_release
from sfumato.statement.statement import Section, Sheet, Statement

__all__ = ["Section", "Sheet", "Statement", "statement_of_ledger", "statement_of_release"]
