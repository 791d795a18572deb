// What the list of clusters shows: filtering, sorting, grouping, and the state in its address.
// Everything here is a pure function.

import type { Health, Row } from "./model";

export const healths: Health[] = ["failing", "progressing", "deleting", "paused", "ready"];

export type SortKey = "health" | "name" | "version" | "changed" | "age";

export interface Query {
  text: string;
  health: Health | "";
  group: string;
  sort: SortKey;
  reverse: boolean;
}

export const everything: Query = { text: "", health: "", group: "", sort: "health", reverse: false };

// parseQuery reads a query from the search part of an address. It ignores what it doesn't know.
export function parseQuery(search: string): Query {
  const p = new URLSearchParams(search);
  const health = healths.find((h) => h === p.get("health")) ?? "";
  const sort = p.get("sort") ?? "";
  const key = (["name", "version", "changed", "age"] as const).find((k) => k === sort.replace("-", ""));
  return { text: p.get("q") ?? "", health, group: p.get("group") ?? "", sort: key ?? "health", reverse: sort.startsWith("-") };
}

// formatQuery returns the search part for a query, "" for the default one.
export function formatQuery(q: Query): string {
  const p = new URLSearchParams();
  if (q.text) p.set("q", q.text);
  if (q.health) p.set("health", q.health);
  if (q.group) p.set("group", q.group);
  if (q.sort !== "health" || q.reverse) p.set("sort", (q.reverse ? "-" : "") + q.sort);
  const text = p.toString();
  return text ? "?" + text : "";
}

// matches reports whether a row has every word of a text somewhere. A word key=value selects a
// label.
export function matches(row: Row, text: string): boolean {
  return text.toLowerCase().split(/\s+/).every((word) => word === "" || hasWord(row, word));
}

function hasWord(row: Row, word: string): boolean {
  const labels = Object.entries(row.labels ?? {}).map(([k, v]) => `${k}=${v}`);
  const all = [row.name, row.namespace, row.health, row.version, row.waiting, row.cause, row.metro, row.owner, row.manager, row.git, row.gitRevision, ...labels];
  return all.some((part) => part?.toLowerCase().includes(word));
}

// compareVersions orders versions of Kubernetes by number.
export function compareVersions(a = "", b = ""): number {
  const parts = (v: string) => v.replace(/^v/, "").split(".").map((n) => parseInt(n, 10) || 0);
  const [x, y] = [parts(a), parts(b)];
  for (let i = 0; i < 3; i++) {
    const d = (x[i] ?? 0) - (y[i] ?? 0);
    if (d !== 0) return d;
  }
  return 0;
}

const orders: Record<SortKey, (a: Row, b: Row) => number> = {
  health: (a, b) => healths.indexOf(a.health) - healths.indexOf(b.health),
  name: () => 0,
  version: (a, b) => compareVersions(a.version, b.version),
  changed: (a, b) => b.changed.localeCompare(a.changed),
  age: (a, b) => b.created.localeCompare(a.created),
};

export type Item = { row: Row } | { group: string; count: number; failing: number };

// groupings returns what rows can be grouped by: fixed columns, and labels that several rows have.
export function groupings(rows: Iterable<Row>): string[] {
  const counts = new Map<string, number>();
  for (const row of rows) {
    for (const key of Object.keys(row.labels ?? {})) counts.set(key, (counts.get(key) ?? 0) + 1);
  }
  const labels = [...counts].filter(([, n]) => n > 1).map(([key]) => "label:" + key);
  return ["namespace", "version", "metro", "owner", "manager", "health", ...labels.sort().slice(0, 20)];
}

function groupOf(row: Row, by: string): string {
  if (by.startsWith("label:")) return row.labels?.[by.slice("label:".length)] ?? "";
  switch (by) {
    case "namespace": return row.namespace;
    case "version": return row.version ?? "";
    case "metro": return row.metro ?? "";
    case "owner": return row.owner ?? "";
    case "manager": return row.manager ?? "";
    case "health": return row.health;
    default: return "";
  }
}

// byName orders names as people do: web-2 before web-10.
const byName = new Intl.Collator("en", { numeric: true }).compare;

// arrange returns the lines of the list.
export function arrange(rows: Iterable<Row>, q: Query): Item[] {
  const order = orders[q.sort];
  const shown = [...rows].filter((r) => (q.health === "" || r.health === q.health) && matches(r, q.text));
  shown.sort((a, b) => (order(a, b) || byName(a.name, b.name) || byName(a.namespace, b.namespace)) * (q.reverse ? -1 : 1));
  if (!q.group) return shown.map((row) => ({ row }));
  const groups = new Map<string, Row[]>();
  for (const row of shown) {
    const key = groupOf(row, q.group);
    const members = groups.get(key);
    if (members) members.push(row);
    else groups.set(key, [row]);
  }
  const names = [...groups.keys()].sort((a, b) => (q.group === "version" ? compareVersions(b, a) : byName(a, b)));
  return names.flatMap((name): Item[] => {
    const members = groups.get(name) ?? [];
    const failing = members.filter((r) => r.health === "failing").length;
    return [{ group: name || "none", count: members.length, failing }, ...members.map((row) => ({ row }))];
  });
}

// tally counts the rows of each health.
export function tally(rows: Iterable<Row>): Record<Health, number> {
  const out = { failing: 0, progressing: 0, deleting: 0, paused: 0, ready: 0 };
  for (const row of rows) out[row.health]++;
  return out;
}

// skew returns how many minor versions a row is behind the newest one, or 0.
export function skew(row: Row, newest: string): number {
  const minor = (v: string) => parseInt(v.replace(/^v/, "").split(".")[1] ?? "", 10);
  const d = minor(newest) - minor(row.version ?? "");
  return d > 0 ? d : 0;
}

// commit abbreviates the commit in a revision of Flux, such as main@sha1:0123….
export function commit(revision = ""): string {
  const id = revision.slice(revision.lastIndexOf(":") + 1);
  return /^[0-9a-f]{8,}$/.test(id) ? id.slice(0, 7) : id;
}

// user abbreviates the name of a service account.
export function user(name = ""): string {
  return name.replace("system:serviceaccount:", "").replace(":", "/");
}

// age formats a duration in milliseconds as kubectl does: the largest unit that is readable.
export function age(ms: number): string {
  const s = Math.max(0, Math.floor(ms / 1000));
  if (s < 120) return `${s}s`;
  const m = Math.floor(s / 60);
  if (m < 120) return `${m}m`;
  const h = Math.floor(m / 60);
  if (h < 48) return `${h}h`;
  const d = Math.floor(h / 24);
  return d < 730 ? `${d}d` : `${Math.floor(d / 365)}y`;
}

// visible returns the range of lines to render in a list that is scrolled.
export function visible(scroll: number, height: number, line: number, count: number): [number, number] {
  const spare = 6;
  const first = Math.max(0, Math.floor(scroll / line) - spare);
  const last = Math.min(count, Math.ceil((scroll + height) / line) + spare);
  return [Math.min(first, last), last];
}
