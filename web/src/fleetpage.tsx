// The list of all clusters.

import { useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { type Item, type Query, type SortKey, arrange, commit, compareVersions, formatQuery, groupings, healths, parseQuery, skew, tally, user } from "./fleet";
import type { Health, Row } from "./model";
import { Age, List, Once, Pill, Tally, healthWord, typing, useNarrow, useNow } from "./parts";
import { go, replace, useLocation } from "./route";
import { type State } from "./store";

export function FleetPage({ store }: { store: State }) {
  const { search } = useLocation();
  const q = parseQuery(search);
  const now = useNow(10_000);
  const narrow = useNarrow();
  const [selected, select] = useState(-1);
  const field = useRef<HTMLInputElement>(null);
  const change = (more: Partial<Query>) => {
    select(-1);
    replace("/" + formatQuery({ ...q, ...more }));
  };
  const rows = [...store.rows.values()];
  const items = arrange(rows, q);
  const counts = tally(rows);
  const newest = rows.reduce((n, r) => (compareVersions(r.version, n) > 0 ? (r.version ?? n) : n), "");

  // A later effect would miss a key that follows at once.
  useLayoutEffect(() => {
    const listener = (e: KeyboardEvent) => {
      if (typing(e)) {
        if (e.key === "Escape" && e.target === field.current) field.current?.blur();
        return;
      }
      const step = (d: number) => {
        let i = selected + d;
        while (items[i] && "group" in (items[i] as Item)) i += d;
        if (items[i]) select(i);
      };
      const at = items[selected];
      if (e.key === "/") field.current?.focus();
      else if (e.key === "j" || e.key === "ArrowDown") step(1);
      else if (e.key === "k" || e.key === "ArrowUp") step(-1);
      else if (e.key === "Enter" && at && "row" in at && document.activeElement?.tagName !== "A") go("/clusters/" + at.row.id);
      else if (e.key === "Escape") change({ text: "", health: "" });
      else return;
      e.preventDefault();
    };
    addEventListener("keydown", listener);
    return () => removeEventListener("keydown", listener);
  });

  if (!store.loaded) return <Waiting store={store} />;
  return (
    <main id="main" class="fleet">
      <h1 class="visually-hidden">Fleet</h1>
      <Summary counts={counts} total={rows.length} q={q} change={change} />
      <div class="tools">
        <label class="search">
          <span class="visually-hidden">Search clusters</span>
          <input ref={field} type="search" placeholder="Search name, namespace, version, reason, label=value   ( / )" value={q.text}
            onInput={(e) => change({ text: e.currentTarget.value })} />
        </label>
        <label class="choose">Group by
          <select value={q.group} onChange={(e) => change({ group: e.currentTarget.value })}>
            <option value="">nothing</option>
            {groupings(rows).map((g) => <option key={g} value={g}>{g.replace("label:", "label ")}</option>)}
          </select>
        </label>
        <label class="choose">Sort by
          <select value={q.sort} onChange={(e) => change({ sort: e.currentTarget.value as SortKey, reverse: false })}>
            <option value="health">health</option><option value="name">name</option><option value="version">version</option>
            <option value="changed">last change</option><option value="age">age</option>
          </select>
        </label>
        <span class="shown" role="status">{countShown(items)} shown</span>
      </div>
      {rows.length === 0 ? <Teach /> : items.length === 0 ? <Nothing clear={() => change({ text: "", health: "" })} /> : (
        <List count={items.length} line={narrow ? 86 : 46} label="Clusters" selected={selected} head={<Head q={q} change={change} />}>
          {(i) => {
            const item = items[i] as Item;
            if ("group" in item) return <GroupLine key={"group " + item.group} item={item} index={i} />;
            const r = item.row;
            return (
              <Once key={r.id} of={[r, i === selected, newest, now, i]}>
                {() => <Line row={r} index={i} selected={i === selected} newest={newest} now={now} />}
              </Once>
            );
          }}
        </List>
      )}
    </main>
  );
}

const countShown = (items: Item[]) => items.filter((i) => "row" in i).length;

// Waiting shows that the server reads the plane, and why that takes long.
export function Waiting({ store }: { store: State }) {
  return (
    <main id="main" class="empty" aria-busy="true">
      <h1>{store.problem ? "The management plane can't be read" : "Reading the fleet"}</h1>
      <p>{store.problem || "This takes a moment for large fleets."}</p>
      {store.problem && <p>Check it with <code>drover status</code>. This page continues by itself.</p>}
    </main>
  );
}

function Summary({ counts, total, q, change }: { counts: Record<Health, number>; total: number; q: Query; change: (q: Partial<Query>) => void }) {
  return (
    <section class="summary" aria-label="Clusters by health">
      <div class="counts">
        <button type="button" class="count" aria-pressed={q.health === ""} onClick={() => change({ health: "" })}>
          <b>{total}</b><span>{total === 1 ? "cluster" : "clusters"}</span>
        </button>
        {healths.map((h) => (
          <button type="button" key={h} class={"count " + h + (counts[h] === 0 ? " none" : "")} aria-pressed={q.health === h}
            onClick={() => change({ health: q.health === h ? "" : h })}>
            <b>{counts[h]}</b><span><i class="dot" aria-hidden="true" />{healthWord(h)}</span>
          </button>
        ))}
      </div>
      {total > 0 && (
        <div class="bar" aria-hidden="true">
          {[...healths].reverse().map((h) => counts[h] > 0 && <i key={h} class={h} style={{ flexGrow: String(counts[h]) }} />)}
        </div>
      )}
    </section>
  );
}

function Head({ q, change }: { q: Query; change: (q: Partial<Query>) => void }) {
  const sortable = (key: SortKey, title: string, className: string) => (
    <div role="columnheader" class={"cell " + className} aria-sort={q.sort === key ? (q.reverse ? "descending" : "ascending") : "none"}>
      <button type="button" onClick={() => change({ sort: key, reverse: q.sort === key && !q.reverse })}>
        {title}{q.sort === key && <span aria-hidden="true">{q.reverse ? " ↑" : " ↓"}</span>}
      </button>
    </div>
  );
  const plain = (title: string, className: string) => <div role="columnheader" class={"cell " + className}>{title}</div>;
  return (
    <div class="line heads" role="row" aria-rowindex={1}>
      {sortable("name", "Cluster", "name")}
      {sortable("health", "Health", "health")}
      {plain("Waiting for", "waiting")}
      {sortable("version", "Kubernetes", "version")}
      {plain("Control", "num cp")}
      {plain("Workers", "num workers")}
      {plain("Add-ons", "num addons")}
      {plain("Packages", "num packages")}
      {plain("Owner", "owner")}
      {sortable("changed", "Changed", "num changed")}
      {sortable("age", "Age", "num age")}
    </div>
  );
}

function Line({ row, index, selected, newest, now }: { row: Row; index: number; selected: boolean; newest: string; now: number }) {
  const behind = skew(row, newest);
  return (
    <div class={"line row " + row.health + (selected ? " selected" : "")} role="row" aria-rowindex={index + 2} data-id={row.id}
      onClick={(e) => (e.target as Element).closest("a") ?? go("/clusters/" + row.id)}>
      <div class="cell name" role="cell">
        <a href={"/clusters/" + row.id}>{row.name}</a>
        <span class="dim ns">{row.namespace}{row.git && <GitBadge row={row} />}
          {row.manager === row.name && <span class="badge" title="A management cluster">mgmt</span>}</span>
      </div>
      <div class="cell health" role="cell"><Pill health={row.health} /></div>
      <div class="cell waiting" role="cell" title={row.waiting}>
        {row.waiting ? <><span class="message">{row.waiting}</span><span class="dim cause">{row.cause}</span></> : <span class="dim">–</span>}
      </div>
      <div class="cell version" role="cell">
        <span>{(row.version ?? "–").replace(/^v/, "")}</span>
        {row.want && <span class="badge info" title={"Upgrading to " + row.want}>→ {row.want.replace(/^v/, "")}</span>}
        {!row.want && behind > 0 && <span class="badge" title={`${behind} minor ${behind > 1 ? "versions" : "version"} behind the newest of the fleet`}>−{behind}</span>}
      </div>
      <div class="cell num cp" role="cell"><span class="hint">CP </span><Tally count={row.controlPlane} what="control plane machines" /></div>
      <div class="cell num workers" role="cell"><span class="hint">Workers </span><Tally count={row.workers} what="workers" /></div>
      <div class="cell num addons" role="cell"><Tally count={row.addOns} what="add-ons" /></div>
      <div class="cell num packages" role="cell"><Tally count={row.packages} what="packages" /></div>
      <div class="cell owner" role="cell" title={row.owner ?? ""}>{user(row.owner).replace(row.namespace + "/", "") || <span class="dim">–</span>}</div>
      <div class="cell num changed" role="cell"><Age at={row.changed} now={now} /></div>
      <div class="cell num age" role="cell"><Age at={row.created} now={now} /></div>
    </div>
  );
}

// GitBadge shows the commit that Flux has applied.
function GitBadge({ row }: { row: Row }) {
  const applied = row.gitRevision ? `, which has applied ${row.gitRevision}` : "";
  return <span class="badge" title={`The spec is in Git: FluxConfig ${row.git}${applied}`}>{commit(row.gitRevision) || "git"}</span>;
}

function GroupLine({ item, index }: { item: { group: string; count: number; failing: number }; index: number }) {
  return (
    <div class="line group" role="row" aria-rowindex={index + 2}>
      <div role="cell"><b>{item.group}</b> <span class="dim">{item.count}</span>
        {item.failing > 0 && <span class="badge bad">{item.failing} failing</span>}</div>
    </div>
  );
}

// Teach says how to get a first cluster.
function Teach() {
  return (
    <div class="empty">
      <h2>No clusters yet</h2>
      <p>Create the first one from a terminal. It appears here at once.</p>
      <pre tabIndex={0}>{"drover generate clusterconfig one -p docker --workload > one.yaml\ndrover create cluster -f one.yaml"}</pre>
      <p>Manifests of Cluster API work, too: <code>drover kubectl apply -f cluster.yaml</code></p>
    </div>
  );
}

function Nothing({ clear }: { clear: () => void }) {
  return (
    <div class="empty">
      <h2>No cluster matches</h2>
      <p>Every word must occur in the name, namespace, health, version, reason or a label.</p>
      <button type="button" onClick={clear}>Show all clusters</button>
    </div>
  );
}

// useFleet returns rows by cluster name, for other pages.
export function useFleet(store: State): Map<string, Row> {
  return useMemo(() => new Map([...store.rows.values()].map((r) => [r.name, r])), [store.rows.size]);
}
