// Parts of the page of a cluster that are tables: its nodes, and who changed it.

import { useState } from "preact/hooks";
import { user } from "./fleet";
import type { AuditItem, MachineItem } from "./model";
import { Age, Failure } from "./parts";
import { useAnswer } from "./store";

const nodeWords: Record<string, [string, string]> = { True: ["good", "ready"], False: ["bad", "not ready"], Unknown: ["warn", "unknown"] };

// Nodes lists the machines of a cluster with their nodes.
export function Nodes({ machines, now }: { machines: MachineItem[]; now: number }) {
  if (machines.length === 0) return null;
  const ready = machines.filter((m) => m.nodeReady === "True").length;
  return (
    <details class="card" open={machines.length <= 12}>
      <summary><h2>Nodes</h2> <span class="dim">{ready} of {machines.length} ready</span></summary>
      <div class="wide" tabIndex={0} role="group" aria-label="Nodes">
        <table>
          <thead><tr><th scope="col">Node</th><th scope="col">State</th><th scope="col">Role</th><th scope="col">Kubernetes</th><th scope="col">Address</th><th scope="col">Machine</th><th scope="col" class="num">Age</th></tr></thead>
          <tbody>{machines.map((m) => {
            const [tone, word] = nodeWords[m.nodeReady ?? ""] ?? ["info", m.node ? "unknown" : "not joined"];
            return (
              <tr key={m.name}>
                <th scope="row">{m.node ?? <span class="dim">{m.name}</span>}</th>
                <td title={m.message ?? ""}><span class={"release " + tone}><i class="dot" aria-hidden="true" />{word}</span></td>
                <td>{m.role}</td><td>{m.version?.replace(/^v/, "") ?? "–"}</td><td>{m.address ?? "–"}</td>
                <td>{[m.phase, m.plan].filter(Boolean).join(" · ")}</td><td class="num"><Age at={m.created} now={now} /></td>
              </tr>
            );
          })}</tbody>
        </table>
      </div>
    </details>
  );
}

// Audit lists who changed a cluster.
export function Audit({ id, revision, now }: { id: string; revision: string; now: number }) {
  const [open, set] = useState(false);
  return (
    <details class="card" onToggle={(e) => set(e.currentTarget.open)}>
      <summary><h2>Audit</h2></summary>
      {open && <Records id={id} revision={revision} now={now} />}
    </details>
  );
}

function Records({ id, revision, now }: { id: string; revision: string; now: number }) {
  const { value, error } = useAnswer<AuditItem[]>(`/api/clusters/${id}/audit`, revision);
  if (error) return <Failure problem={error} />;
  if (value?.length === 0) return <p class="dim">No change is recorded.</p>;
  return (
    <ul class="events audit">
      {(value ?? []).map((r, i) => (
        <li key={i}>
          <Age at={r.time} now={now} /><b>{r.action} <span class="dim">by {user(r.user)}</span></b>
          <span>{r.object && r.object + ": "}{r.evicted ? `${r.evicted} older records` : (r.changes ?? []).map(describe).join(", ")}</span>
        </li>
      ))}
    </ul>
  );
}

const describe = (c: { path: string; from?: string; to?: string }) =>
  c.path.replace(/^spec\./, "") + (c.from || c.to ? ` ${c.from || "none"} → ${c.to || "none"}` : "");
