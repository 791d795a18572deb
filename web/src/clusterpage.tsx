// One cluster: why it isn't ready, the diagram of its objects, its history, and what can be done.

import { useEffect, useState } from "preact/hooks";
import { ActionDialog } from "./actions";
import { AddOnDialog } from "./addon";
import { Audit, Nodes } from "./clusterparts";
import { age, commit, user } from "./fleet";
import type { Action, Detail, Link, Operation, Release, Timeline, TreeNode } from "./model";
import { Age, Code, Failure, Pill, capital, typing, useNow } from "./parts";
import { go } from "./route";
import { type Problem, type State, read, useAnswer } from "./store";

const labels: Record<Action["name"], string> = {
  scale: "Scale", upgrade: "Upgrade", pause: "Pause", resume: "Resume", kubeconfig: "Kubeconfig", delete: "Delete",
  rollback: "Roll back", continue: "Resume rollout",
};

export function ClusterPage({ store, id }: { store: State; id: string }) {
  const row = store.rows.get(id);
  const { value: detail, error } = useAnswer<Detail>("/api/clusters/" + id, row?.revision ?? "");
  const now = useNow(5000);
  const [doing, act] = useState<Action | undefined>(undefined);
  const [done, report] = useState("");
  const [addOn, showAddOn] = useState<Release | undefined>(undefined);
  const [failed, fail] = useState<Problem | undefined>(undefined);
  useEffect(() => {
    const listener = (e: KeyboardEvent) => {
      if (e.key === "Escape" && !typing(e)) go("/");
    };
    addEventListener("keydown", listener);
    return () => removeEventListener("keydown", listener);
  }, []);

  if (!detail) {
    return (
      <main id="main" class="empty">
        <h1>{id.split("/")[2]}</h1>
        {error ? <Failure problem={error} /> : null}
        <p><a href="/">Back to the fleet</a></p>
      </main>
    );
  }
  const shown = row ?? detail.row;
  return (
    <main id="main" class="cluster">
      <header class="title">
        <nav aria-label="Path"><a href="/">Fleet</a> <span aria-hidden="true">/</span> {shown.namespace}</nav>
        <h1>{shown.name}</h1>
        <Pill health={shown.health} />
        <span class="facts">
          {shown.version && <span>Kubernetes {shown.version.replace(/^v/, "")}{shown.want && ` → ${shown.want.replace(/^v/, "")}`}</span>}
          <span>{shown.controlPlane.ready}/{shown.controlPlane.total} control plane</span>
          <span>{shown.workers.ready}/{shown.workers.total} workers</span>
          {shown.owner && <span>created by {user(shown.owner)}</span>}
          {shown.gitRevision && <span title={shown.gitRevision}>Git {commit(shown.gitRevision)}</span>}
          <span>age <Age at={shown.created} now={now} /></span>
        </span>
        <div class="actions">{detail.actions.map((a) => (
          <ActionButton key={a.name} action={a} act={a.name === "kubeconfig" && !a.unusable ? () => download(id, shown.name, fail) : act} />
        ))}</div>
      </header>
      {!row && <div class="notice" role="status">This cluster was deleted, or you may not see it anymore. <a href="/">Back to the fleet</a></div>}
      {done && <div class="notice good" role="status">{done}</div>}
      {failed && <Failure problem={failed} />}
      {error && <Failure problem={error} />}
      {!detail.why.ready && <Why detail={detail} now={now} />}
      {(detail.why.git ?? []).length > 0 && (
        <section class="card why" aria-label="Git"><h2>Changes in Git don't arrive</h2>
          <ul class="chain">{detail.why.git?.map((l) => <Cause key={l.name} link={l} now={now} />)}</ul></section>
      )}
      <Diagram tree={detail.tree} failing={shown.health === "failing"} hidden={detail.hidden === true} now={now} />
      <div class="columns">
        <Gantt operation={detail.operation} cluster={shown.name} ready={detail.why.ready} now={now} />
        <Installed detail={detail} show={showAddOn} />
      </div>
      <Nodes machines={detail.machines} now={now} />
      {shown.kind === "drover" && <Audit id={id} revision={shown.revision} now={now} />}
      <Events id={id} revision={shown.revision} now={now} />
      <details class="card"><summary><h2>Spec</h2></summary><pre tabIndex={0}>{detail.spec}</pre></details>
      {addOn && (
        <AddOnDialog store={store} namespace={addOn.clusterNamespace} name={addOn.addOn ?? ""}
          close={(message) => {
            showAddOn(undefined);
            report(message);
          }} />
      )}
      {doing && (
        <ActionDialog path={"/api/clusters/" + id} name={shown.name} action={doing}
          close={(message) => {
            act(undefined);
            report(message);
          }} />
      )}
    </main>
  );
}

// download saves a kubeconfig. A link would save the error, too.
function download(id: string, name: string, fail: (p: Problem | undefined) => void) {
  fail(undefined);
  read(`/api/clusters/${id}/kubeconfig`).then((content) => {
    const address = URL.createObjectURL(content);
    const link = document.createElement("a");
    link.href = address;
    link.download = name + ".kubeconfig";
    link.click();
    setTimeout(() => URL.revokeObjectURL(address), 1000);
  }, fail);
}

function ActionButton({ action, act }: { action: Action; act: (a: Action) => void }) {
  return (
    <button type="button" class={action.name === "delete" ? "danger" : ""} aria-disabled={action.unusable ? true : undefined}
      title={action.unusable} onClick={() => act(action)}>{labels[action.name]}</button>
  );
}

function Why({ detail, now }: { detail: Detail; now: number }) {
  return (
    <section class={"card why " + detail.row.health} aria-label="Why the cluster is not ready">
      <h2>Why it is not ready</h2>
      <ol class="chain">{detail.why.chain?.map((l, i) => <Cause key={i} link={l} now={now} />)}</ol>
      <p class="next"><b>What to do</b> <span><Code text={capital(detail.why.next)} /></span></p>
    </section>
  );
}

function Cause({ link, now }: { link: Link; now: number }) {
  return (
    <li>
      <b>{link.kind} {link.name}</b>
      {link.condition && <span class="badge">{link.condition}: {link.reason}</span>}
      {link.since && <span class="dim">for <Age at={link.since} now={now} /></span>}
      <div>{link.message}</div>
    </li>
  );
}

const short: Record<string, string> = {
  "Cluster API Cluster": "Cluster API", PacketCluster: "Endpoint", KubeadmControlPlane: "Control plane", EtcdadmCluster: "Etcd",
  MachineDeployment: "Workers", PacketMachine: "Device", KubeadmConfig: "Bootstrap", HelmReleaseProxy: "Add-on", FluxConfig: "Git repository", GitChange: "Change in Git",
};

// stateOf is the health of an object. What isn't ready has failed if the cluster has.
const stateOf = (n: TreeNode, failing: boolean) =>
  n.deleting ? "deleting" : n.failure ? "failing" : n.paused ? "paused" : n.ready ? "ready" : failing ? "failing" : "progressing";

// crowd is how many machines of a group are shown before the ready ones are folded.
const crowd = 6;

function Diagram({ tree, failing, hidden, now }: { tree: TreeNode; failing: boolean; hidden: boolean; now: number }) {
  const [chosen, choose] = useState("");
  const find = (n: TreeNode): TreeNode | undefined =>
    n.kind + "/" + n.name === chosen ? n : n.children?.map(find).find((x) => x !== undefined);
  const node = chosen ? find(tree) : undefined;
  return (
    <section class="card diagram" aria-label="Objects of the cluster">
      <h2>Objects</h2>
      {hidden && <p class="dim">You may not read all objects of this cluster. Ask for the role drover-viewer in namespace eksa-system.</p>}
      <div class="canvas" tabIndex={0} role="group" aria-label="Diagram"><ul class="tree"><Branch node={tree} root={tree.name} failing={failing} chosen={chosen} choose={choose} /></ul></div>
      {node && <Conditions node={node} now={now} />}
    </section>
  );
}

// shownBelow returns the children that the diagram shows: of machines only what isn't ready.
function shownBelow(node: TreeNode, chosen: boolean): TreeNode[] {
  const all = node.children ?? [];
  return node.kind === "Machine" && !chosen ? all.filter((c) => !c.ready && !node.ready) : all;
}

function Branch({ node, root, failing, chosen, choose }: { node: TreeNode; root: string; failing: boolean; chosen: string; choose: (id: string) => void }) {
  const [all, showAll] = useState(false);
  const id = node.kind + "/" + node.name;
  const below = node.children?.some((c) => chosen === c.kind + "/" + c.name) ?? false;
  const children = shownBelow(node, chosen === id || below);
  const folded = !all && children.length > crowd ? children.filter((c) => c.ready).slice(crowd - 2) : [];
  const open = children.filter((c) => !folded.includes(c));
  return (
    <li>
      <button type="button" class={"node " + stateOf(node, failing)} aria-pressed={chosen === id} onClick={() => choose(chosen === id ? "" : id)}>
        <span class="kind"><i class="dot" aria-hidden="true" />{short[node.kind] ?? node.kind}</span>
        <span class="id" title={node.name}>{node.name.startsWith(root + "-") ? node.name.slice(root.length + 1) : node.name}</span>
        <span class="dim">{node.detail || stateOf(node, failing)}</span>
      </button>
      {children.length > 0 && (
        <ul>
          {open.map((c) => <Branch key={c.kind + c.name} node={c} root={root} failing={failing} chosen={chosen} choose={choose} />)}
          {folded.length > 0 && <li><button type="button" class="node more" onClick={() => showAll(true)}>{folded.length} more, all ready</button></li>}
        </ul>
      )}
    </li>
  );
}

function Conditions({ node, now }: { node: TreeNode; now: number }) {
  const all = node.conditions ?? [];
  return (
    <div class="conditions">
      <h3>{node.kind} {node.name} <span class="dim">in {node.namespace}</span></h3>
      {node.failure && <p class="failure">{node.failure}</p>}
      {node.remedy && <p class="next"><b>What to do</b> <span><Code text={capital(node.remedy)} /></span></p>}
      {all.length === 0 ? <p class="dim">The controller has not reported anything yet.</p> : (
        <table>
          <thead><tr><th scope="col">Condition</th><th scope="col">Status</th><th scope="col">Reason</th><th scope="col" class="num">Since</th><th scope="col">Message</th></tr></thead>
          <tbody>{all.map((c) => (
            <tr key={c.type} class={node.unmet?.includes(c.type) ? "unmet" : ""}>
              <th scope="row">{c.type}</th><td>{c.status}</td><td>{c.reason}</td>
              <td class="num"><Age at={c.lastTransitionTime} now={now} /></td><td>{c.message}</td>
            </tr>
          ))}</tbody>
        </table>
      )}
    </div>
  );
}

// Gantt shows the stages of the creation or of the last change, with how long each took.
function Gantt({ operation, cluster, ready, now }: { operation: Operation; cluster: string; ready: boolean; now: number }) {
  const { stages } = operation;
  const begin = Date.parse(stages[0]?.at ?? "");
  const end = ready ? Date.parse(stages.at(-1)?.at ?? "") : now;
  const total = Math.max(1, end - begin);
  let last = begin;
  const bars = stages.slice(1).map((s) => {
    const from = s.begin ? Date.parse(s.begin) : last;
    last = Date.parse(s.at);
    return { name: s.name, left: ((from - begin) / total) * 100, width: (Math.max(0, last - from) / total) * 100, took: s.seconds };
  });
  const creation = operation.name === "creation";
  return (
    <section class="card gantt" aria-label={creation ? "Stages of the creation" : "Stages of the last change"}>
      <h2>{creation ? "Creation" : "Last change"} {stages[0] && <span class="when"><Age at={stages[0].at} now={now} /> ago</span>}</h2>
      {bars.length === 0 && <p class="dim">{creation ? "No stage is complete yet." : "No machine was replaced or updated since then."}</p>}
      {operation.hidden ? <p class="dim">{operation.hidden} earlier machines are not shown</p> : null}
      <ol>{bars.map((b) => (
        <li key={b.name}>
          <span class="what" title={b.name}>{b.name.replace(" " + cluster + "-", " ")}</span>
          <span class="track" aria-hidden="true"><i style={{ marginLeft: Math.min(b.left, 99) + "%", width: Math.max(b.width, 1) + "%" }} /></span>
          <span class="num">{duration(b.took)}</span>
        </li>
      ))}</ol>
      {!ready && <p class="dim">{age(now - last)} in the current stage</p>}
    </section>
  );
}

const duration = (s: number) => (s < 120 ? `${Math.round(s)}s` : age(s * 1000));

function Installed({ detail, show }: { detail: Detail; show: (r: Release) => void }) {
  const { addOns, packages } = detail;
  return (
    <section class="card" aria-label="Add-ons and packages">
      <h2>Add-ons and packages</h2>
      {addOns.length + packages.length === 0 && (
        <p class="dim">None. A HelmChartProxy that selects this cluster installs a chart; <code>drover apply package</code> installs a package.</p>
      )}
      <ul class="installed">
        {addOns.map((r) => (
          <li key={r.clusterNamespace + r.addOn + r.release}>
            <b>{r.addOn ?? r.release}</b> <span>{r.version}</span>
            <span class={"state " + (r.ready === "True" ? "good" : r.failure ? "bad" : "warn")}>{r.status ?? "waiting"}{r.drifted && ", drifted"}</span>
            {r.addOn && <button type="button" class="small" aria-label={"History of " + r.addOn} onClick={() => show(r)}>History</button>}
            {r.ready !== "True" && <div class="dim">{r.failure ?? r.message}</div>}
          </li>
        ))}
        {packages.map((p) => (
          <li key={p.namespace + p.name}>
            <b>{p.name}</b> <span>{p.version}</span>
            <span class={"state " + (p.state === "installed" && !p.drifted ? "good" : "warn")}>{p.state || "waiting"}{p.drifted && ", drifted"}</span>
            {p.detail && <div class="dim">{p.detail}</div>}
          </li>
        ))}
      </ul>
    </section>
  );
}

function Events({ id, revision, now }: { id: string; revision: string; now: number }) {
  const [open, set] = useState(false);
  return (
    <details class="card" onToggle={(e) => set(e.currentTarget.open)}>
      <summary><h2>Events</h2></summary>
      {open && <EventList id={id} revision={revision} now={now} />}
    </details>
  );
}

function EventList({ id, revision, now }: { id: string; revision: string; now: number }) {
  const { value, error } = useAnswer<Timeline>(`/api/clusters/${id}/events`, revision);
  if (error) return <Failure problem={error} />;
  return (
    <ul class="events">
      {(value?.entries ?? []).toReversed().map((e, i) => (
        <li key={i} class={e.warning ? "warning" : ""}><Age at={e.time} now={now} /><b>{e.object}</b><span>{e.what}</span></li>
      ))}
    </ul>
  );
}
