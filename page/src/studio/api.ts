// Requests to the studio, each a table in and a table out. A newer wish of one kind cancels the older ones.
export interface Trouble {
  kind: string;
  message: string;
  field: string | null;
  kept?: string;
}

export class Refusal extends Error {
  constructor(readonly trouble: Trouble) {
    super(trouble.message);
  }
}

/** A name for this page, so that the server knows whose older wishes are outdated. */
const TAB = Array.from(crypto.getRandomValues(new Uint32Array(4)), (one) => one.toString(36)).join("");
const underWay = new Map<string, AbortController>();
let count = 0;

async function send<T>(name: string, asked: object, signal?: AbortSignal): Promise<T> {
  let answer: Response;
  try {
    answer = await fetch(`/api/${name}`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ ...asked, tab: TAB, number: ++count }),
      ...(signal ? { signal } : {}),
    });
  } catch (error) {
    if (error instanceof DOMException && error.name === "AbortError") throw error;
    const message = "The studio does not answer: was it ended? What was charged and written stays. Start it again with: sfumato studio";
    throw new Refusal({ kind: "Gone", message, field: null });
  }
  const told = (await answer.json()) as T & { error?: Trouble };
  if (told.error) throw new Refusal(told.error);
  return told;
}

/** Ask, and wait for the answer. */
export const ask = <T>(name: string, asked: object = {}): Promise<T> => send<T>(name, asked);

/** Ask for what is shown of one thing; null where a newer wish of that kind came first. */
export async function latest<T>(name: string, asked: object, kind: string = name): Promise<T | null> {
  underWay.get(kind)?.abort();
  const mine = new AbortController();
  underWay.set(kind, mine);
  try {
    return await send<T>(name, asked, mine.signal);
  } catch (error) {
    if (mine.signal.aborted || (error instanceof Refusal && error.trouble.kind === "Outdated")) return null;
    throw error;
  }
}

/** Numbers as the server packs them. */
export function unpacked(text: string): Float32Array {
  const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  return new Float32Array(bytes.buffer);
}
