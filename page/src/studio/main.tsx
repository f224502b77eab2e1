import { effect } from "@preact/signals";
import { render } from "preact";
import { Budget } from "./budget";
import { Describe } from "./describe";
import { Explore } from "./explore";
import { Same } from "./parts";
import { Plan } from "./plan";
import { Publish } from "./publish";
import { begin, described, face, FACES, start, trouble, troubleOf, type Face } from "./state";
import { theme, type Theme } from "./theme";
import "./studio.css";

const NAMES: Record<Face, string> = { describe: "Describe", plan: "Plan", publish: "Publish", explore: "Explore", budget: "Budget" };
const PARTS = { describe: Describe, plan: Plan, publish: Publish, explore: Explore, budget: Budget };

// The token was good once and has done its part: it stays in no history.
if (location.search) history.replaceState(null, "", location.pathname + location.hash);
effect(() => {
  if (location.hash !== `#${face.value}`) history.replaceState(null, "", `#${face.value}`);
  document.title = `${NAMES[face.value]} · sfumato studio`;
});

function Studio() {
  const Part = PARTS[face.value];
  const there = described.value;
  const told = trouble.value;
  const file = start.value?.file?.endsWith(".toml") ? start.value.file : "publication.toml";
  return (
    <>
      <a class="skip" href="#main" onClick={(event) => { event.preventDefault(); document.getElementById("main")?.focus(); }}>
        To the page
      </a>
      <header>
        <p class="name">
          <span class="mark" aria-hidden="true" />
          sfumato <span>studio</span>
        </p>
        <nav aria-label="Faces">
          {FACES.map((one) => (
            <button key={one} type="button" aria-current={one === face.value ? "page" : undefined} onClick={() => (face.value = one)}>
              {NAMES[one]}
            </button>
          ))}
        </nav>
        <label class="theme">
          <span class="unseen">Colours</span>
          <select value={theme.value} onChange={(event) => (theme.value = event.currentTarget.value as Theme)}>
            <option value="auto">Auto</option>
            <option value="light">Light</option>
            <option value="dark">Dark</option>
          </select>
        </label>
      </header>
      <main id="main" tabIndex={-1} aria-label={NAMES[face.value]}>
        <h1 class="unseen">{NAMES[face.value]}</h1>
        {told && told.field === null && face.value !== "explore" && (
          <div class="note bad" role="alert">
            {told.message}
          </div>
        )}
        <Part />
        {there && face.value !== "explore" && face.value !== "budget" && <Same toml={there.toml} python={there.python} file={file} />}
      </main>
      <footer>
        sfumato {start.value?.version} · on this machine, folder {start.value?.folder}
      </footer>
    </>
  );
}

async function open(): Promise<void> {
  const app = document.getElementById("app")!;
  try {
    await begin();
  } catch (error) {
    trouble.value = troubleOf(error);
  }
  render(<Studio />, app);
}

void open();
