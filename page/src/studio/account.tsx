// The ledger and the account that pay, wherever the page speaks of them.
import { signal } from "@preact/signals";
import { ask } from "./api";
import { Input, Note, Select } from "./parts";
import { say, start, text, troubleOf } from "./state";

export interface Entry {
  time: string;
  kind: string;
  label: string;
  release: string | null;
  epsilon: string;
  rate: string;
  cost: string;
}
export interface Stream {
  name: string;
  epsilon: string;
  window: string;
  hides: string;
  unit: string;
  steps: { at: string; epsilon: string; label: string }[];
}
export interface Opened {
  dataset: string;
  accounts: string[];
  total: string;
  spent: string;
  left: string;
  hides: string | null;
  relation: string | null;
  fixed: string[];
  unit: string | null;
  history: Entry[];
  streams: Stream[];
}

export const account = signal<Opened | null>(null);
const refused = signal<string | null>(null);
const total = signal("10");

export async function readAccount(): Promise<void> {
  const ledger = text("account.ledger");
  refused.value = null;
  if (!ledger) {
    account.value = null;
    return;
  }
  try {
    account.value = await ask<Opened>("account", { ledger, dataset: text("account.dataset") });
  } catch (error) {
    account.value = null;
    refused.value = troubleOf(error).message;
  }
}

async function create(): Promise<void> {
  try {
    const made = { ledger: text("account.ledger"), dataset: text("account.dataset"), epsilon: total.value, hide: text("hide") };
    account.value = await ask<Opened>("open_account", made);
    refused.value = null;
  } catch (error) {
    refused.value = troubleOf(error).message;
  }
}

export function Account() {
  const there = account.value;
  return (
    <>
      <Input
        label="Ledger"
        field="account.ledger"
        value={text("account.ledger")}
        list={start.value?.listed.ledgers ?? []}
        placeholder="budget.db"
        said={(one) => {
          say(["account.ledger", one]);
          void readAccount();
        }}
      />
      {there && there.accounts.length > 1 ? (
        <Select
          label="Account"
          field="account.dataset"
          value={text("account.dataset") || there.dataset}
          options={there.accounts.map((one) => [one, one])}
          said={(one) => {
            say(["account.dataset", one]);
            void readAccount();
          }}
        />
      ) : (
        <Input
          label="Account"
          field="account.dataset"
          value={text("account.dataset")}
          placeholder="default"
          said={(one) => {
            say(["account.dataset", one]);
            void readAccount();
          }}
        />
      )}
      {there && (
        <p class="facts-line">
          <b>ε {there.left}</b> of {there.total} left{there.hides ? `. It hides that ${there.hides}` : ""}
        </p>
      )}
      {refused.value && text("account.ledger") && (
        <Note>
          <p>{refused.value}</p>
          <div class="row">
            <Input label="Total of a new account" type="number" step="any" value={total.value} said={(one) => (total.value = one)} />
            <button type="button" onClick={() => void create()}>
              Make this account
            </button>
          </div>
          <p class="hint">It takes what is hidden here as what it hides, and its total is what may ever be spent on these data.</p>
        </Note>
      )}
    </>
  );
}
