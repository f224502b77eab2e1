// Spending: the account, what would be charged and left, a look at whether the data are what they seem, a button that
// asks once, and the release. A page that is reloaded meanwhile finds the work where it is.
import { signal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { ask, type Trouble } from "./api";
import { Account, account, readAccount } from "./account";
import { Check, Input, Note, Panel } from "./parts";
import { NotHidden } from "./plan";
import { face, say, tables, text, toOpen, trouble, troubleOf, value } from "./state";

interface Quote {
  total: string;
  spent: string;
  left: string;
  cost: string | null;
  after: string | null;
  fits: boolean;
  refusal: string | null;
}
interface Looked {
  looks: { what: string; ok: boolean }[];
  account?: Quote;
  warnings: string[];
}
interface Done {
  file: string;
  path: string;
  id: string;
  again: boolean;
  left: string | null;
  epsilon: string;
  promise: string;
  warnings: string[];
}
interface Job<T> {
  phase: string;
  running: boolean;
  stoppable: boolean;
  result: T | null;
  error: Trouble | null;
}

const looked = signal<Job<Looked> | null>(null);
const published = signal<Job<Done> | null>(null);
const bad = signal<Trouble | null>(null);
const PHASES: Record<string, string> = {
  waiting: "Waiting for its turn …",
  counting: "Counting the records; nothing is charged yet …",
  "charging and drawing": "Charging the account, then drawing the noise …",
  writing: "Writing the release …",
};

/** The publication whose work is looked after: what was begun goes on under it, whatever is changed meanwhile. */
let watched = "";

async function follow<T>(kind: "check" | "publish", into: { value: Job<T> | null }, first: Job<T>): Promise<void> {
  const publication = tables.value;
  watched = JSON.stringify(publication);
  let job = first;
  into.value = job;
  while (job.running) {
    await new Promise((done) => setTimeout(done, 250));
    job = await ask<Job<T>>("job", { kind, publication });
    if (JSON.stringify(tables.value) !== watched) return;
    into.value = job;
  }
  if (job.error) {
    bad.value = job.error;
    if (job.error.field) trouble.value = job.error;
  }
  await readAccount();
}

async function run<T>(kind: "check" | "publish", into: { value: Job<T> | null }, more: object = {}): Promise<void> {
  bad.value = null;
  try {
    await follow(kind, into, await ask<Job<T>>(kind, { publication: tables.value, ...more }));
  } catch (error) {
    into.value = null;
    bad.value = troubleOf(error);
    if (bad.value.field) trouble.value = bad.value;
  }
}

/** What goes on, or was done, for this publication: found again after a reload, and in another tab. */
async function find(): Promise<void> {
  if (!text("output.file") || !text("data.path")) return;
  for (const [kind, into] of [["publish", published], ["check", looked]] as const) {
    try {
      const job = await ask<Job<never>>("job", { kind, publication: tables.value });
      if (job.running) void follow(kind, into as { value: Job<never> | null }, job);
      else if (job.result && kind === "publish") (into as { value: Job<never> | null }).value = job;
    } catch {
      return; // what is wrong with the publication is said beside its fields
    }
  }
}

export function Publish() {
  const dialog = useRef<HTMLDialogElement>(null);
  const said = JSON.stringify(tables.value);
  useEffect(() => {
    if (said !== watched) {
      looked.value = null;
      published.value = null;
      bad.value = null;
    }
    void find();
    void readAccount();
  }, [said]);
  const quote = looked.value?.result?.account ?? null;
  const troubled = looked.value?.result?.looks.filter((one) => !one.ok) ?? [];
  const without = value("account.without_ledger") === true;
  const busy = Boolean(looked.value?.running || published.value?.running);
  const done = published.value?.result ?? null;
  const ready = Boolean(text("data.path") && text("output.file") && (text("account.ledger") || without));
  return (
    <div class="face">
      <div class="side">
        <Panel title="Account">
          {!without && <Account />}
          <Check
            label="Publish without a ledger: nobody adds up what is spent"
            checked={without}
            said={(on) => say(["account.without_ledger", on ? true : undefined], ...(on ? ([["account.ledger", undefined], ["account.dataset", undefined]] as [string, undefined][]) : []))}
          />
          <Input label="A note for the ledger, kept in plain text" field="account.label" value={text("account.label")} said={(one) => say(["account.label", one])} />
        </Panel>
        <Panel title="Release">
          <Input
            label="File of the release"
            field="output.file"
            value={text("output.file")}
            placeholder="visits.sfumato"
            said={(one) => say(["output.file", one])}
            hint="One file is one publication: it is charged once, and never replaced."
          />
        </Panel>
      </div>
      <div class="stage">
        <section class="steps">
          <h2>1. A look at the data</h2>
          <p>
            Counts the records and charges nothing. Here it is only said what is grossly wrong; exact figures are private, and appear on the terminal in which the studio runs.
          </p>
          <button type="button" onClick={() => void run("check", looked)} disabled={!ready || busy}>
            Look at the data
          </button>
          {!ready && <p class="hint">Name the data, the account and the file of the release first.</p>}
          {looked.value?.running && <Progress phase={looked.value.phase} />}
          {looked.value?.result && (
            <ul class="looks" aria-label="What was found">
              {looked.value.result.looks.map((one) => (
                <li key={one.what} class={one.ok ? "ok" : "gross"}>
                  {one.ok ? "In order: " : "Not for most of them: "}
                  {one.what}
                </li>
              ))}
            </ul>
          )}
          {troubled.length > 0 && <Note kind="warning">Something looks grossly wrong. Bounds that are changed because of it are a choice by private data; wrong columns or units are not.</Note>}
        </section>
        <section class="steps">
          <h2>2. What it costs</h2>
          {quote ? <Charge quote={quote} /> : <p class="hint">{without ? "Nothing is added up." : "Known after the look at the data."}</p>}
        </section>
        <section class="steps">
          <h2>3. Publish</h2>
          {!done && (
            <button type="button" class="primary" disabled={!ready || busy || (quote !== null && !quote.fits)} onClick={() => dialog.current?.showModal()}>
              Publish …
            </button>
          )}
          {published.value?.running && <Progress phase={published.value.phase} />}
          {bad.value && (
            <Note kind="bad">
              {bad.value.message}
              {bad.value.kept && ` It is ${bad.value.kept}.`}
            </Note>
          )}
          {done && (
            <Note kind="good">
              <p>
                <b>{done.again ? `${done.file} was published before; nothing was charged now.` : `Published ${done.file}.`}</b>
                {done.left !== null && ` ε ${done.left} is left in the account.`}
              </p>
              <button
                type="button"
                class="primary"
                onClick={() => {
                  toOpen.value = text("output.file");
                  face.value = "explore";
                }}
              >
                Explore it
              </button>
            </Note>
          )}
        </section>
        <NotHidden />
      </div>
      <dialog ref={dialog} aria-labelledby="asked">
        <h2 id="asked">Publish {text("output.file")}?</h2>
        {quote?.cost ? (
          <p>
            Account {account.value?.dataset ?? text("account.dataset")} is charged ε {quote.cost}; {quote.after} is left. What is charged is never given back.
          </p>
        ) : (
          <p>{without ? "No account is charged: nobody adds up what all releases say together." : `The account is charged for ε ${text("epsilon")}, once. What is charged is never given back.`}</p>
        )}
        {troubled.length > 0 && <Note kind="warning">{`Not for most records: ${troubled.map((one) => one.what).join(", ")}.`}</Note>}
        <form method="dialog" class="buttons">
          <button type="submit">Not now</button>
          <button
            type="submit"
            class="primary"
            onClick={() => void run("publish", published, { agreed: true })}
          >
            Publish
          </button>
        </form>
      </dialog>
    </div>
  );
}

function Progress({ phase }: { phase: string }) {
  return (
    <div class="progress" role="status">
      <span class="pulse" aria-hidden="true" />
      {PHASES[phase] ?? phase}
    </div>
  );
}

function Charge({ quote }: { quote: Quote }) {
  const [total, spent, cost] = [ratio(quote.total), ratio(quote.spent), ratio(quote.cost ?? "0")];
  return (
    <>
      <div class="budget-bar" role="img" aria-label={`${quote.spent} of ${quote.total} spent; this release ${quote.cost ?? "is refused"}`}>
        <span class="spent" style={{ width: `${(100 * spent) / total}%` }} />
        <span class={quote.fits ? "cost" : "cost over"} style={{ width: `${Math.min(100 - (100 * spent) / total, (100 * cost) / total)}%` }} />
      </div>
      {quote.refusal ? (
        <Note kind="bad">{quote.refusal}</Note>
      ) : (
        <dl class="facts">
          <dt>Spent so far</dt>
          <dd>ε {quote.spent} of {quote.total}</dd>
          <dt>This release</dt>
          <dd>ε {quote.cost}</dd>
          <dt>Left afterwards</dt>
          <dd>{quote.fits ? `ε ${quote.after}` : `not enough: ${quote.left} is left now`}</dd>
        </dl>
      )}
    </>
  );
}

/** A fraction as the ledger writes it, such as 2/3, as a number for a bar. */
export function ratio(text: string): number {
  const [top, bottom] = text.replace("≤", "").trim().split("/").map(Number);
  return (top ?? 0) / (bottom ?? 1);
}

