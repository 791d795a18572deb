// Tests of the page's logic. A Go test bundles them and runs them in a browser.

import { age, arrange, commit, compareVersions, everything, formatQuery, groupings, matches, parseQuery, skew, tally, user, visible } from "./fleet";
import type { Row } from "./model";

const failures: string[] = [];

function equal(what: string, got: unknown, want: unknown) {
  const [a, b] = [JSON.stringify(got), JSON.stringify(want)];
  if (a !== b) failures.push(`${what}: got ${a}, want ${b}`);
}

function row(name: string, more: Partial<Row> = {}): Row {
  const count = { ready: 1, total: 1 };
  return {
    id: "drover/team-a/" + name, kind: "drover", namespace: "team-a", name, health: "ready", version: "v1.36.3", controlPlane: count, workers: count,
    addOns: count, packages: count, created: "2026-01-01T00:00:00Z", changed: "2026-01-02T00:00:00Z", revision: "1", ...more,
  };
}

const names = (rows: Row[], query: Partial<typeof everything>) =>
  arrange(rows, { ...everything, ...query }).map((i) => ("row" in i ? i.row.name : `[${i.group} ${i.count} ${i.failing}]`)).join(" ");

const fleet = [
  row("web-2", { version: "v1.9.0", labels: { env: "prod" } }),
  row("web-10", { health: "failing", waiting: "no server is free", version: "v1.10.1", labels: { env: "prod" } }),
  row("batch", { health: "progressing", namespace: "team-b", created: "2026-01-03T00:00:00Z" }),
];

equal("the worst are first", names(fleet, {}), "web-10 batch web-2");
equal("by name", names(fleet, { sort: "name" }), "batch web-2 web-10");
equal("by name, reversed", names(fleet, { sort: "name", reverse: true }), "web-10 web-2 batch");
equal("versions are numbers", names(fleet, { sort: "version" }), "web-2 web-10 batch");
equal("by age, the youngest first", names(fleet, { sort: "age" }).split(" ")[0], "batch");
equal("one health", names(fleet, { health: "failing" }), "web-10");
equal("groups count their rows", names(fleet, { group: "namespace" }), "[team-a 2 1] web-10 web-2 [team-b 1 0] batch");
equal("rows without a label are in a group", names(fleet, { group: "label:env" }), "[none 1 0] batch [prod 2 1] web-10 web-2");
equal("every word must match", [matches(fleet[1] as Row, "SERVER web"), matches(fleet[1] as Row, "server batch"), matches(fleet[0] as Row, "env=prod")], [true, false, true]);
equal("labels of several rows group", groupings(fleet).includes("label:env"), true);
equal("counts", tally(fleet), { failing: 1, progressing: 1, deleting: 0, paused: 0, ready: 1 });

for (const search of ["", "?q=no+server&health=failing&group=label%3Aenv&sort=-age"]) equal("the address is kept", formatQuery(parseQuery(search)), search);
equal("unknown values are ignored", formatQuery(parseQuery("?health=great&sort=color&x=y")), "");

equal("versions", [compareVersions("v1.9.0", "v1.10.0") < 0, compareVersions("1.36.3", "v1.36.3"), compareVersions(undefined, "v1.0.0") < 0], [true, 0, true]);
equal("skew", [skew(row("a", { version: "v1.34.1" }), "v1.36.3"), skew(row("a"), "v1.36.9"), skew(row("a", { version: "" }), "v1.36.3")], [2, 0, 0]);
equal("ages", [-5, 61_000, 180_000, 7_300_000, 200_000_000, 9e10].map(age), ["0s", "61s", "3m", "2h", "2d", "2y"]);
equal("commits", ["main@sha1:4f0c2d91ab77", "main", undefined].map((r) => commit(r)), ["4f0c2d9", "main", ""]);
equal("users", [user("system:serviceaccount:team-a:creator"), user("alice"), user()], ["team-a/creator", "alice", ""]);
equal("visible lines", [visible(0, 400, 40, 1000), visible(20_000, 400, 40, 1000), visible(99_999, 400, 40, 10)], [[0, 16], [494, 516], [10, 10]]);

(globalThis as unknown as { failures: string[] }).failures = failures;
