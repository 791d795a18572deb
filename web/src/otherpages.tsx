// Add-ons and machines across the fleet.

import { useMemo, useState } from "preact/hooks";
import { AddOnDialog } from "./addon";
import { compareVersions } from "./fleet";
import type { AddOn, AddOns, MachineItem, Release } from "./model";
import { Age, Failure, List, Once, useNarrow, useNow } from "./parts";
import { type State, useAnswer } from "./store";

// AddOnsPage shows which version of each add-on is on which cluster.
export function AddOnsPage({ store }: { store: State }) {
  const { value, error } = useAnswer<AddOns>("/api/addons", store.topics["add-ons"] ?? 0);
  const [text, search] = useState("");
  const [only, limit] = useState(false);
  const [shown, show] = useState<AddOn | undefined>(undefined);
  const [done, report] = useState("");
  const matrix = useMemo(() => (value ? arrangeMatrix(value) : undefined), [value]);
  if (error && !value) return <main id="main" class="empty"><h1>Add-ons</h1><Failure problem={error} /></main>;
  if (!value || !matrix) return <main id="main" class="empty" aria-busy="true"><h1>Add-ons</h1></main>;
  if (value.addOns.length + value.releases.length === 0) {
    return (
      <main id="main" class="empty">
        <h1>No add-ons yet</h1>
        <p>A HelmChartProxy installs a chart on every cluster that its selector matches, and keeps it there.</p>
        <pre tabIndex={0}>{"drover addon diff -f greeting.yaml     # preview it on each cluster\ndrover kubectl apply -f greeting.yaml"}</pre>
      </main>
    );
  }
  const lines = matrix.lines.filter((l) => l.cluster.includes(text.toLowerCase()) && (!only || l.bad));
  return (
    <main id="main" class="addons">
      <h1>Add-ons</h1>
      <ul class="charts">{value.addOns.map((a) => <Chart key={a.namespace + a.name} addOn={a} show={show} />)}</ul>
      {done && <div class="notice good" role="status">{done}</div>}
      {shown && (
        <AddOnDialog store={store} namespace={shown.namespace} name={shown.name}
          close={(message) => {
            show(undefined);
            report(message);
          }} />
      )}
      <div class="tools">
        <label class="search"><span class="visually-hidden">Search clusters</span>
          <input type="search" placeholder="Search clusters" value={text} onInput={(e) => search(e.currentTarget.value)} /></label>
        <label class="choose"><input type="checkbox" checked={only} onChange={(e) => limit(e.currentTarget.checked)} /> Only behind or not ready</label>
        <span class="shown" role="status">{lines.length} clusters</span>
      </div>
      <div class={"matrix columns-" + Math.min(matrix.columns.length, 12)}>
        <List count={lines.length} line={40} label="Add-ons by cluster" head={
          <div class="line heads" role="row" aria-rowindex={1}><div class="cell name" role="columnheader">Cluster</div>
            {matrix.columns.map((c) => <div class="cell" role="columnheader" key={c} title={c}>{c}</div>)}</div>
        }>
          {(i) => {
            const l = lines[i] as MatrixLine;
            return (
              <div class="line" role="row" aria-rowindex={i + 2} key={l.namespace + l.cluster}>
                <div class="cell name" role="rowheader"><a href={clusterPath(store, l)}>{l.cluster}</a></div>
                {matrix.columns.map((c) => <div class="cell" role="cell" key={c}><Cell release={l.cells.get(c)} newest={matrix.newest.get(c) ?? ""} /></div>)}
              </div>
            );
          }}
        </List>
      </div>
    </main>
  );
}

// clusterPath finds the page of a cluster, which is of Drover or of Cluster API.
function clusterPath(store: State, l: MatrixLine): string {
  const plain = `capi/${l.namespace}/${l.cluster}`;
  if (store.rows.has(plain)) return "/clusters/" + plain;
  for (const row of store.rows.values()) if (row.name === l.cluster && row.kind === "drover") return "/clusters/" + row.id;
  return "/clusters/" + plain;
}

interface MatrixLine {
  cluster: string;
  namespace: string;
  cells: Map<string, Release>;
  bad: boolean;
}

interface Matrix {
  columns: string[];
  lines: MatrixLine[];
  // newest is the newest version of each add-on anywhere.
  newest: Map<string, string>;
}

// arrangeMatrix arranges releases by cluster and add-on.
export function arrangeMatrix(all: AddOns): Matrix {
  const newest = new Map<string, string>();
  const lines = new Map<string, MatrixLine>();
  for (const r of all.releases) {
    const column = r.addOn ?? r.chart;
    if (compareVersions(r.version, newest.get(column)) > 0) newest.set(column, r.version ?? "");
    const key = r.clusterNamespace + "/" + r.cluster;
    const line = lines.get(key) ?? { cluster: r.cluster, namespace: r.clusterNamespace, cells: new Map<string, Release>(), bad: false };
    line.cells.set(column, r);
    lines.set(key, line);
  }
  for (const line of lines.values()) {
    line.bad = [...line.cells].some(([c, r]) => r.ready !== "True" || r.drifted === true || compareVersions(r.version, newest.get(c)) < 0);
  }
  const columns = new Set([...all.addOns.map((a) => a.name), ...all.releases.map((r) => r.addOn ?? r.chart)]);
  return { columns: [...columns].sort(), lines: [...lines.values()].sort((a, b) => a.cluster.localeCompare(b.cluster)), newest };
}

function Cell({ release, newest }: { release: Release | undefined; newest: string }) {
  if (!release) return <span class="dim" aria-label="not installed">·</span>;
  const behind = compareVersions(release.version, newest) < 0;
  const [tone, word] = release.failure ? ["bad", "failed"] : release.ready !== "True" ? ["warn", "not ready"]
    : release.drifted ? ["warn", "drifted"] : behind ? ["info", "behind"] : ["good", ""];
  return (
    <span class={"release " + tone} title={release.failure ?? release.message ?? ""}>
      <i class="dot" aria-hidden="true" />{release.version || "–"}{word && <small>{word}</small>}
    </span>
  );
}

function Chart({ addOn: a, show }: { addOn: AddOn; show: (a: AddOn) => void }) {
  const r = a.rollout;
  const share = a.matched ? Math.round((a.readyOn / a.matched) * 100) : 0;
  return (
    <li class="card chart">
      <button type="button" class="small" aria-label={"History of " + a.name} onClick={() => show(a)}>History</button>
      <b>{a.name}</b> <span class="dim">{a.namespace} · {a.chart}{a.paused && " · paused"}</span>
      <div class="bar" role="img" aria-label={`ready on ${a.readyOn} of ${a.matched} clusters`}>
        <i class="ready" style={{ flexGrow: String(share) }} /><i class={a.failedOn ? "failing" : "rest"} style={{ flexGrow: String(100 - share) }} />
      </div>
      <span>Ready on {a.readyOn} of {a.matched}{a.failedOn > 0 && <b class="bad">, failed on {a.failedOn}</b>}</span>
      {r && <span class="dim">Rollout {r.phase}, wave {r.wave ?? 0} of {Math.max(r.waves ?? 0, r.wave ?? 0)}</span>}
      {a.ready === "False" && <div class="dim">{a.message}</div>}
    </li>
  );
}

// MachinesPage lists the machines of all clusters.
export function MachinesPage({ store }: { store: State }) {
  const { value, error } = useAnswer<MachineItem[]>("/api/machines", store.topics["machines"] ?? 0);
  const [text, search] = useState("");
  const now = useNow(10_000);
  const narrow = useNarrow();
  if (error && !value) return <main id="main" class="empty"><h1>Machines</h1><Failure problem={error} /></main>;
  if (!value) return <main id="main" class="empty" aria-busy="true"><h1>Machines</h1></main>;
  if (store.plane?.hidden?.includes("machines")) {
    return <main id="main" class="empty"><h1>Machines</h1><p>You may not list machines. Ask for the role drover-viewer in namespace eksa-system.</p></main>;
  }
  const words = text.toLowerCase().split(/\s+/);
  const shown = value.filter((m) => words.every((w) => [m.name, m.cluster, m.role, m.version, m.phase, m.node, m.address, m.plan].some((p) => p?.toLowerCase().includes(w))));
  const heads = ["Machine", "Cluster", "Role", "Kubernetes", "Phase", "Device", "Address", "Age"];
  return (
    <main id="main" class="machines">
      <h1>Machines</h1>
      <div class="tools">
        <label class="search"><span class="visually-hidden">Search machines</span>
          <input type="search" placeholder="Search name, cluster, role, version, address" value={text} onInput={(e) => search(e.currentTarget.value)} /></label>
        <span class="shown" role="status">{shown.length} of {value.length}, {value.filter((m) => m.ready === "True").length} ready</span>
      </div>
      {value.length === 0 ? <div class="empty"><h2>No machines yet</h2><p>Machines appear here as soon as a cluster asks for them.</p></div> : (
        <List count={shown.length} line={narrow ? 64 : 40} label="Machines" head={
          <div class="line heads" role="row" aria-rowindex={1}>{heads.map((h) => <div class={"cell " + h.toLowerCase()} role="columnheader" key={h}>{h}</div>)}</div>
        }>
          {(i) => {
            const m = shown[i] as MachineItem;
            return <Once key={m.namespace + m.name} of={[m, now, i]}>{() => <MachineLine machine={m} index={i} now={now} />}</Once>;
          }}
        </List>
      )}
    </main>
  );
}

function MachineLine({ machine: m, index, now }: { machine: MachineItem; index: number; now: number }) {
  const health = m.ready === "True" ? "ready" : m.phase === "Failed" ? "failing" : "progressing";
  return (
    <div class={"line " + health} role="row" aria-rowindex={index + 2} title={m.message ?? ""}>
      <div class="cell machine" role="cell"><i class={"dot " + health} role="img" aria-label={health} />{m.name}</div>
      <div class="cell cluster" role="cell"><a href={"/clusters/" + (m.clusterID ?? "")}>{m.cluster}</a></div>
      <div class="cell role" role="cell">{m.role}</div>
      <div class="cell kubernetes" role="cell">{m.version?.replace(/^v/, "") ?? "–"}</div>
      <div class="cell phase" role="cell">{m.phase ?? "–"}</div>
      <div class="cell device" role="cell">{[m.plan, m.device].filter(Boolean).join(" · ") || "–"}</div>
      <div class="cell address" role="cell">{m.address ?? "–"}</div>
      <div class="cell age" role="cell"><Age at={m.created} now={now} /></div>
    </div>
  );
}
