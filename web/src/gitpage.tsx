// Git: what became of the commits of each repository.

import { useState } from "preact/hooks";
import { commit, user } from "./fleet";
import type { Commit, InRepository, Progress, Repository } from "./model";
import { Age, Code, Failure, useNow } from "./parts";
import { type State, useAnswer } from "./store";

// order lists what needs somebody's help first.
const order: Progress[] = ["rejected", "pending", "unknown", "applied", "superseded"];

const tones: Record<Progress, string> = { rejected: "bad", pending: "info", unknown: "", applied: "good", superseded: "" };

export function GitPage({ store }: { store: State }) {
  const { value, error } = useAnswer<Repository[]>("/api/git", store.topics["git"] ?? 0);
  const now = useNow(10_000);
  const [only, limit] = useState(false);
  if (error && !value) return <main id="main" class="empty"><h1>Git</h1><Failure problem={error} /></main>;
  if (!value) return <main id="main" class="empty" aria-busy="true"><h1>Git</h1></main>;
  if (store.plane?.hidden?.includes("FluxConfigs")) {
    return <main id="main" class="empty"><h1>Git</h1><p>You may not list FluxConfigs. Ask for the role drover-viewer.</p></main>;
  }
  if (value.length === 0) {
    return (
      <main id="main" class="empty">
        <h1>No repository is connected</h1>
        <p>With a Git repository, every change of a cluster is a commit, and Flux applies each cluster on its own.</p>
        <pre tabIndex={0}>drover gitops enable --help</pre>
      </main>
    );
  }
  return (
    <main id="main" class="page">
      <div class="tools">
        <h1>Git</h1>
        <label class="choose"><input type="checkbox" checked={only} onChange={(e) => limit(e.currentTarget.checked)} /> Only pending and rejected</label>
      </div>
      {value.map((r) => <Repo key={r.namespace + r.name} repository={r} only={only} now={now} />)}
    </main>
  );
}

function Repo({ repository: r, only, now }: { repository: Repository; only: boolean; now: number }) {
  const open = (p: Progress) => !only || p === "rejected" || p === "pending";
  const clusters = r.clusters.filter((c) => open(c.progress)).sort((a, b) => order.indexOf(a.progress) - order.indexOf(b.progress));
  const changes = r.changes.filter((c) => open(c.progress));
  const counts = order.map((p) => [p, r.clusters.filter((c) => c.progress === p).length] as const).filter(([, n]) => n > 0);
  return (
    <section class="card repository" aria-label={`Repository ${r.name} of ${r.namespace}`}>
      <h2>{r.namespace} / {r.name}</h2>
      <p class="facts">
        <span><code>{r.url ?? "no URL"}</code></span><span>branch {r.branch}</span>
        <span>newest commit <code title={r.revision ?? ""}>{commit(r.revision) || "none"}</code></span>
        {counts.map(([p, n]) => <Mark key={p} progress={p} text={`${n} ${p}`} />)}
      </p>
      {r.state !== "Ready" && <p class="notice"><b>{r.state}</b> {r.message}</p>}
      {r.unconfirmed && <p class="next"><b>What to do</b> <span><Code text={"Confirm the deletion with `drover gitops confirm`, or restore the files."} /></span></p>}
      {clusters.length > 0 && <Clusters all={clusters} />}
      {changes.length > 0 && <Changes all={changes} now={now} />}
      {r.clusters.length === 0 && <p class="dim">No cluster is in this repository yet.</p>}
    </section>
  );
}

function Mark({ progress, text }: { progress: Progress; text: string }) {
  return <span class={"release " + tones[progress]}><i class="dot" aria-hidden="true" />{text}</span>;
}

function Clusters({ all }: { all: InRepository[] }) {
  return (
    <div class="wide" tabIndex={0} role="group" aria-label="Clusters in the repository">
      <table>
        <thead><tr><th scope="col">Cluster</th><th scope="col">State</th><th scope="col">Applied</th><th scope="col">Message</th></tr></thead>
        <tbody>{all.map((c) => (
          <tr key={c.id}>
            <th scope="row"><a href={"/clusters/" + c.id}>{c.name}</a></th>
            <td><Mark progress={c.progress} text={c.progress} /></td>
            <td class="commit"><code title={c.revision ?? ""}>{commit(c.revision) || "–"}</code></td>
            <td>{c.progress === "applied" ? "" : c.message}</td>
          </tr>
        ))}</tbody>
      </table>
    </div>
  );
}

function Changes({ all, now }: { all: Commit[]; now: number }) {
  return (
    <>
      <h3>Changes that Drover commits</h3>
      <div class="wide" tabIndex={0} role="group" aria-label="Changes that Drover commits">
        <table>
          <thead><tr><th scope="col" class="num">Age</th><th scope="col">Cluster</th><th scope="col">Change</th><th scope="col">State</th><th scope="col">Commit</th><th scope="col">User</th><th scope="col">Message</th></tr></thead>
          <tbody>{all.map((c) => (
            <tr key={c.name}>
              <td class="num"><Age at={c.created} now={now} /></td>
              <th scope="row"><a href={"/clusters/" + c.id}>{c.cluster}</a></th>
              <td>{c.command ? <code>{c.command}</code> : c.action}</td>
              <td><Mark progress={c.progress} text={c.progress} /></td>
              <td class="commit"><code>{commit(c.commit) || "–"}</code></td>
              <td>{user(c.user) || "–"}</td>
              <td>{c.message}</td>
            </tr>
          ))}</tbody>
        </table>
      </div>
    </>
  );
}
