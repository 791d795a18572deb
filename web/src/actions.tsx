// What can be done with a cluster: choose, see what would change and the command that does the
// same, confirm.

import { useEffect, useRef, useState } from "preact/hooks";
import type { Action, Plan } from "./model";
import { Code, Command, Failure } from "./parts";
import { Problem, call } from "./store";

export interface Request {
  action: string;
  revision?: number;
  group?: string;
  count?: number;
  version?: string;
  confirm?: string;
  state?: string;
}

const verbs: Record<Action["name"], string> = {
  pause: "Pause", resume: "Resume", scale: "Scale", upgrade: "Upgrade", delete: "Delete", kubeconfig: "Download the kubeconfig of",
  rollback: "Roll back", continue: "Resume the rollout of",
};

const done: Record<Action["name"], string> = {
  pause: "Reconciliation is paused.", resume: "Reconciliation continues.", scale: "Scaling has started.",
  upgrade: "The upgrade has started.", delete: "Deletion has started.", kubeconfig: "",
  rollback: "The earlier revision is being rolled out.", continue: "The rollout continues.",
};

interface ActionProps {
  // path is that of the object in the API.
  path: string;
  name: string;
  action: Action;
  // asked is what the user has chosen already.
  asked?: Request;
  close: (message: string) => void;
}

export function ActionDialog({ path, name, action, asked, close }: ActionProps) {
  const box = useRef<HTMLDialogElement>(null);
  const [request, set] = useState<Request | undefined>(asked ?? first(action));
  const [plan, setPlan] = useState<Plan | undefined>(undefined);
  const [problem, setProblem] = useState<Problem | undefined>(undefined);
  const [typed, type] = useState("");
  const [busy, setBusy] = useState(false);
  useEffect(() => box.current?.showModal(), []);
  useEffect(() => {
    if (action.unusable || !request) return undefined;
    let current = true;
    setPlan(undefined);
    const timer = setTimeout(() => {
      call<Plan>(path + "/plan", request).then(
        (p) => {
          if (!current) return;
          setPlan(p);
          setProblem(undefined);
        },
        (e: Problem) => current && setProblem(e),
      );
    }, 150);
    return () => {
      current = false;
      clearTimeout(timer);
    };
  }, [request]);
  const confirm = (e: Event) => {
    e.preventDefault();
    if (!plan || !request) return;
    setBusy(true);
    call<Plan>(path + "/do", { ...request, confirm: typed, state: plan.state }).then(
      () => close(done[action.name]),
      (e: Problem) => {
        setBusy(false);
        setProblem(e);
      },
    );
  };
  const unchanged = plan !== undefined && plan.changes.length === 0 && action.name !== "delete";
  return (
    <dialog ref={box} aria-labelledby="dialog-title" onClose={() => close("")}>
      <form onSubmit={confirm}>
        <h2 id="dialog-title">{verbs[action.name]} {name}</h2>
        {action.unusable ? <p class="notice"><Code text={action.unusable} /></p> : <Choices action={action} request={request} set={set} />}
        {plan && <Preview plan={plan} />}
        {plan && action.name === "delete" && (
          <label class="field">Type <b>{name}</b> to confirm
            <input value={typed} autocomplete="off" spellcheck={false} onInput={(e) => type(e.currentTarget.value)} /></label>
        )}
        {unchanged && <p class="dim">Nothing would change.</p>}
        {problem && <Failure problem={problem} />}
        <footer>
          <button type="button" onClick={() => close("")}>Cancel</button>
          {!action.unusable && (
            <button type="submit" class={action.name === "delete" ? "danger primary" : "primary"}
              disabled={busy || !plan || unchanged || (action.name === "delete" && typed !== name)}>{verbs[action.name]}</button>
          )}
        </footer>
      </form>
    </dialog>
  );
}

// first returns the request to plan before the user has chosen anything.
function first(action: Action): Request | undefined {
  const group = action.groups?.find((g) => !g.auto);
  switch (action.name) {
    case "scale": return group && { action: "scale", group: group.name, count: group.count };
    case "upgrade": return action.versions?.[0] ? { action: "upgrade", version: action.versions[0] } : undefined;
    default: return { action: action.name };
  }
}

function Choices({ action, request, set }: { action: Action; request: Request | undefined; set: (r: Request) => void }) {
  if (action.name === "upgrade") {
    if (!action.versions?.length) return <p>The management plane offers no newer version of Kubernetes that this cluster can be upgraded to.</p>;
    return (
      <label class="field">Kubernetes
        <select value={request?.version} onChange={(e) => set({ action: "upgrade", version: e.currentTarget.value })}>
          {action.versions.map((v) => <option key={v}>{v}</option>)}
        </select>
      </label>
    );
  }
  if (action.name !== "scale") return null;
  const group = action.groups?.find((g) => g.name === request?.group);
  const counts = group?.counts && [...new Set([group.count, ...group.counts])].sort((a, b) => a - b);
  return (
    <div class="fields">
      <label class="field">Group
        <select value={request?.group} onChange={(e) => {
          const g = action.groups?.find((x) => x.name === e.currentTarget.value);
          if (g) set({ action: "scale", group: g.name, count: g.count });
        }}>
          {action.groups?.map((g) => <option key={g.name} value={g.name} disabled={g.auto ?? false}>{g.name} ({g.count}{g.auto && ", autoscaled"})</option>)}
        </select>
      </label>
      <label class="field">Machines
        {counts ? (
          <select value={request?.count} onChange={(e) => request && set({ ...request, count: Number(e.currentTarget.value) })}>
            {counts.map((n) => <option key={n} value={n}>{n}</option>)}
          </select>
        ) : <input type="number" min={0} max={1000} required value={request?.count}
          onInput={(e) => e.currentTarget.value !== "" && request && set({ ...request, count: e.currentTarget.valueAsNumber })} />}
      </label>
    </div>
  );
}

function Preview({ plan }: { plan: Plan }) {
  return (
    <div class="preview">
      {plan.changes.length > 0 && (
        <table>
          <thead><tr><th scope="col">Field</th><th scope="col">Now</th><th scope="col">Then</th></tr></thead>
          <tbody>{plan.changes.map((c) => <tr key={c.path}><th scope="row">{c.path}</th><td>{c.from || "–"}</td><td><b>{c.to || "–"}</b></td></tr>)}</tbody>
        </table>
      )}
      {plan.notes?.map((n) => <p key={n}><Code text={n} /></p>)}
      <Command label="The same in a terminal" text={plan.command} />
    </div>
  );
}
