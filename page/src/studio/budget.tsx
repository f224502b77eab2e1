// What was spent, on what, and what is left.
import { signal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { Account, account, readAccount, type Entry, type Opened, type Stream } from "./account";
import { Curve } from "./curve";
import { ask } from "./api";
import { Note, Panel } from "./parts";
import { ratio } from "./publish";
import { text, troubleOf } from "./state";

export function Budget() {
  useEffect(() => void readAccount(), []);
  const there = account.value;
  return (
    <div class="face">
      <div class="side">
        <Panel title="Account">
          <Account />
        </Panel>
        {there && (
          <Panel title="What it promises">
            <p>{there.hides ? `It hides that ${there.hides}.` : "It takes what its first release hides."}</p>
            {there.fixed.length > 0 && <p>Declared to be no function of what changes: {there.fixed.join(", ")}.</p>}
            <p class="hint">{there.unit ? `Unit: ${there.unit}` : "Its unit is that of its first release."}</p>
          </Panel>
        )}
      </div>
      <div class="stage">
        {!there && <p class="empty">Name a ledger to see its accounts.</p>}
        {there && (
          <>
            <h2>
              {there.dataset}: ε {there.left} of {there.total} left
            </h2>
            <div class="budget-bar" role="img" aria-label={`${there.spent} of ${there.total} spent`}>
              <span class="spent" style={{ width: `${Math.min(100, (100 * ratio(there.spent)) / ratio(there.total))}%` }} />
            </div>
            <div class="buttons">
              <button type="button" onClick={() => void download(there)}>
                Download the statement
              </button>
              <a class="button" href={csvOf(there.history)} download={`${there.dataset}.csv`}>
                Download these lines (CSV)
              </a>
            </div>
            {refused.value && <Note kind="bad">{refused.value}</Note>}
            <Spending history={there.history} />
            {there.streams.map((one) => (
              <StreamPart key={one.name} stream={one} />
            ))}
          </>
        )}
      </div>
    </div>
  );
}

const refused = signal<string | null>(null);

/** The statement for auditors, a page of its own, handed to the browser as a file. */
async function download({ dataset }: Opened): Promise<void> {
  refused.value = null;
  try {
    const { html } = await ask<{ html: string }>("statement", { ledger: text("account.ledger"), dataset });
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([html], { type: "text/html" }));
    link.download = `statement-${dataset}.html`;
    link.click();
    window.setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
  } catch (error) {
    refused.value = troubleOf(error).message;
  }
}

/** The lines of an account as a file, made here. */
function csvOf(history: Entry[]): string {
  const quoted = (one: string) => `"${one.replaceAll('"', '""')}"`;
  const rows = history.map((one) => [one.time, one.kind, one.release ?? "", one.epsilon, one.rate, one.cost, one.label].map(quoted).join(","));
  return `data:text/csv;charset=utf-8,${encodeURIComponent(["time,kind,release,epsilon,rate,cost,label", ...rows].join("\n"))}`;
}

function Spending({ history }: { history: Entry[] }) {
  const releases = history.filter((one) => one.kind !== "open" && one.kind !== "raise");
  let sum = 0;
  const sums = releases.map((one) => (sum += ratio(one.cost)));
  return (
    <>
      {releases.length > 1 && <Curve names={releases.map((one) => one.time.slice(0, 10))} value={sums} stepped label="What was spent, added up over the releases" height={220} />}
      <div class="scroll" tabIndex={0} role="region" aria-label="Every line of the account">
        <table class="figures scroll-table">
          <caption>Every line of the account</caption>
          <thead>
            <tr>
              <th scope="col">when (UTC)</th>
              <th scope="col">what</th>
              <th scope="col" class="number">ε</th>
              <th scope="col" class="number">charged</th>
              <th scope="col">note</th>
            </tr>
          </thead>
          <tbody>
            {history.map((one) => (
              <tr key={`${one.time} ${one.release} ${one.label}`}>
                <td>{one.time.slice(0, 16).replace("T", " ")}</td>
                <td>{one.kind}</td>
                <td class="number">{one.epsilon}</td>
                <td class="number">{one.kind === "open" || one.kind === "raise" ? `total ${one.epsilon}` : one.cost}</td>
                <td>{one.label}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </>
  );
}

function StreamPart({ stream }: { stream: Stream }) {
  return (
    <section>
      <h2>Stream {stream.name}</h2>
      <p>
        ε {stream.epsilon} for every window of {stream.window}; {stream.hides}.
      </p>
      {stream.steps.length > 1 && (
        <Curve names={stream.steps.map((one) => one.at)} value={stream.steps.map((one) => ratio(one.epsilon))} stepped label={`ε of every step of ${stream.name}`} height={200} />
      )}
      <p class="hint">{stream.steps.length} steps so far.</p>
    </section>
  );
}

