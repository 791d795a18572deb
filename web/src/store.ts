// The state that comes from the server: the rows of the fleet over one stream, and answers to
// requests. The browser reconnects the stream by itself and says what it has seen.

import { useEffect, useState } from "preact/hooks";
import type { PlaneInfo, Row } from "./model";

export type Connection = "connecting" | "live" | "lost" | "signed-out" | "expired";

export interface State {
  connection: Connection;
  rows: Map<string, Row>;
  loaded: boolean;
  problem: string;
  plane: PlaneInfo | undefined;
  // topics count the changes of what is not in rows.
  topics: Record<string, number>;
}

export const state: State = {
  connection: "connecting", rows: new Map(), loaded: false, problem: "", plane: undefined, topics: {},
};

const listeners = new Set<() => void>();
let scheduled = false;

// changed renders once per frame, however many events arrive.
function changed() {
  if (scheduled) return;
  scheduled = true;
  const run = () => {
    scheduled = false;
    for (const l of listeners) l();
  };
  if (document.hidden) setTimeout(run, 200);
  else requestAnimationFrame(run);
}

// useStore renders a component whenever the state changes.
export function useStore(): State {
  const [, render] = useState(0);
  useEffect(() => {
    const listener = () => render((n) => n + 1);
    listeners.add(listener);
    return () => void listeners.delete(listener);
  }, []);
  return state;
}

// Problem is an error that the server explains.
export class Problem extends Error {
  constructor(message: string, readonly remedy: string, readonly status: number) {
    super(message);
  }
}

// reach sends a request. Browsers drop connections when the network of their host changes, so what only
// reads is tried again.
async function reach(path: string, init: RequestInit, attempts: number): Promise<Response> {
  try {
    return await fetch(path, init);
  } catch {
    if (attempts <= 1) throw new Problem("The server can't be reached.", "Check that `drover ui` is running.", 0);
    await new Promise((done) => setTimeout(done, 300));
    return reach(path, init, attempts - 1);
  }
}

// call sends a request to the server.
export async function call<T>(path: string, body?: unknown): Promise<T> {
  const init: RequestInit = body === undefined ? {} : {
    method: "POST", body: JSON.stringify(body), headers: { "Content-Type": "application/json" },
  };
  const response = await answer(path, init, body === undefined ? 3 : 1);
  return (response.status === 204 ? undefined : await response.json()) as T;
}

// read returns a file.
export async function read(path: string): Promise<Blob> {
  return (await answer(path, {}, 3)).blob();
}

// answer returns a response that is no error.
async function answer(path: string, init: RequestInit, attempts: number): Promise<Response> {
  const response = await reach(path, init, attempts);
  if (response.ok) return response;
  const problem = (await response.json().catch(() => ({}))) as { error?: string; try?: string };
  if (response.status === 401) end(problem.error?.includes("credentials") ? "expired" : "signed-out");
  throw new Problem(problem.error ?? response.statusText, problem.try ?? "", response.status);
}

let source: EventSource | undefined;

function end(why: Connection) {
  source?.close();
  state.connection = why;
  state.rows = new Map();
  changed();
}

// An address with a new token may be opened in a window that shows the page already.
addEventListener("hashchange", () => location.hash.startsWith("#token=") && location.reload());

// Browsers keep pages that were left, with their streams, and open only six connections to a server.
addEventListener("pagehide", () => source?.close());
addEventListener("pageshow", (e) => e.persisted && source && listen());

// start signs in with the token of the address, if there is one, and opens the stream.
export async function start() {
  const token = new URLSearchParams(location.hash.slice(1)).get("token");
  if (token) {
    history.replaceState(null, "", location.pathname + location.search);
    await call("/api/session", { token }).catch(() => undefined);
    if (state.connection === "signed-out") state.connection = "connecting"; // the cookie may be good
  }
  refreshPlane();
  listen();
}

function refreshPlane() {
  call<PlaneInfo>("/api/plane").then((p) => {
    state.plane = p;
    changed();
  }, () => undefined);
}

function listen() {
  source = new EventSource("/api/stream");
  const on = (kind: string, apply: (data: unknown) => void) =>
    source?.addEventListener(kind, (e) => {
      apply(JSON.parse((e as MessageEvent<string>).data));
      changed();
    });
  source.onopen = () => {
    state.connection = "live";
    changed();
  };
  source.onerror = () => {
    if (state.connection === "expired" || state.connection === "signed-out") return;
    state.connection = "lost";
    changed();
    if (source?.readyState === EventSource.CLOSED) retry();
  };
  on("snapshot", (rows) => {
    state.rows = new Map((rows as Row[]).map((r) => [r.id, r]));
    state.loaded = true;
    refreshPlane();
  });
  on("row", (row) => {
    state.rows.set((row as Row).id, row as Row);
    state.loaded = true;
  });
  on("gone", (id) => void state.rows.delete(id as string));
  on("problem", (text) => (state.problem = text as string));
  on("topic", (name) => (state.topics[name as string] = (state.topics[name as string] ?? 0) + 1));
  on("expired", () => end("expired"));
  on("refused", (text) => {
    state.problem = text as string;
  });
}

// retry opens a new stream after the browser has given up. A request says whether the session ended.
function retry() {
  setTimeout(() => {
    call("/api/plane").then(listen, () => {
      if (state.connection === "lost") retry();
    });
  }, 2000);
}

// Answer is the result of a request that is repeated when a key changes. The last value stays
// visible until the next one is there.
export interface Answer<T> {
  value: T | undefined;
  error: Problem | undefined;
}

// useAnswer reads a path, again whenever the key changes.
export function useAnswer<T>(path: string, key: string | number): Answer<T> {
  const [answer, set] = useState<Answer<T> & { path: string }>({ value: undefined, error: undefined, path });
  useEffect(() => {
    let current = true;
    call<T>(path).then(
      (value) => current && set({ value, error: undefined, path }),
      (error: Problem) => current && set((last) => ({ value: last.path === path ? last.value : undefined, error, path })),
    );
    return () => void (current = false);
  }, [path, key]);
  return answer.path === path ? answer : { value: undefined, error: undefined };
}
