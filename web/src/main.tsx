// The frame of the page: navigation, connection, theme, keys.

import { render } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { ClusterPage } from "./clusterpage";
import { FleetPage, Waiting } from "./fleetpage";
import { GitPage } from "./gitpage";
import { AddOnsPage, MachinesPage } from "./otherpages";
import { Code, typing } from "./parts";
import { PlanePage } from "./planepage";
import { follow, useLocation } from "./route";
import { type Connection, type State, start, useStore } from "./store";

const pages = [["/", "Fleet"], ["/addons", "Add-ons"], ["/machines", "Machines"], ["/git", "Git"], ["/plane", "Plane"]] as const;

function App() {
  const store = useStore();
  const { path } = useLocation();
  const [help, setHelp] = useState(false);
  const [theme, toggle] = useTheme();
  useEffect(() => {
    const listener = (e: KeyboardEvent) => {
      if (typing(e)) return;
      if (e.key === "?") setHelp(true);
      else if (e.key === "t") toggle();
    };
    addEventListener("keydown", listener);
    return () => removeEventListener("keydown", listener);
  });
  useEffect(() => {
    document.title = (path.startsWith("/clusters/") ? path.split("/").at(-1) + " · " : "") + "Drover";
  }, [path]);
  if (store.connection === "signed-out" || store.connection === "expired") return <SignedOut why={store.connection} />;
  return (
    <div class="frame" onClick={follow}>
      <a class="skip" href="#main">Skip to content</a>
      <header class="top">
        <a class="brand" href="/"><img src="/icon.svg" alt="" width="24" height="24" />Drover</a>
        <nav aria-label="Pages">
          {pages.map(([href, title]) => (
            <a key={href} href={href} aria-current={(href === "/" ? path === "/" || path.startsWith("/clusters/") : path === href) ? "page" : undefined}>{title}</a>
          ))}
        </nav>
        <Scope store={store} />
        <Live store={store} />
        <button type="button" class="icon" aria-label={`Use the ${theme === "dark" ? "light" : "dark"} theme`} onClick={toggle}>{theme === "dark" ? "☀" : "☾"}</button>
        <button type="button" class="icon" aria-label="Keyboard shortcuts" onClick={() => setHelp(true)}>?</button>
      </header>
      {store.loaded && store.problem && <div class="banner" role="alert">{store.problem}. Shown is the last known state.</div>}
      <Page store={store} path={path} />
      {help && <Help close={() => setHelp(false)} />}
    </div>
  );
}

function Page({ store, path }: { store: State; path: string }) {
  if (path === "/addons") return <AddOnsPage store={store} />;
  if (path === "/machines") return <MachinesPage store={store} />;
  if (path === "/plane") return <PlanePage store={store} />;
  if (path === "/git") return <GitPage store={store} />;
  if (path.startsWith("/clusters/")) {
    if (!store.loaded) return <Waiting store={store} />;
    return <ClusterPage key={path} store={store} id={path.slice("/clusters/".length)} />;
  }
  return <FleetPage store={store} />;
}

// Scope says which plane is shown, and how much of it.
function Scope({ store }: { store: State }) {
  const p = store.plane;
  if (!p) return <span class="scope" />;
  const some = p.namespaces?.length ? `only namespace ${p.namespaces.join(", ")}` : "";
  return <span class="scope" title={`Drover ${p.version ?? ""} at ${p.host}`}>{p.host.replace("https://", "")}{some && <b> · {some}</b>}</span>;
}

function Live({ store }: { store: State }) {
  const words: Record<string, string> = { live: "Live", lost: "Reconnecting", connecting: "Connecting" };
  return <span class={"live " + store.connection} role="status"><i class="dot" aria-hidden="true" />{words[store.connection]}</span>;
}

function SignedOut({ why }: { why: Connection }) {
  return (
    <main id="main" class="empty">
      <h1>{why === "expired" ? "Your credentials have expired" : "You are signed out"}</h1>
      <p><Code text={why === "expired" ? "The management plane no longer accepts them. Renew them, then run `drover ui` again." : "Run `drover ui`, and open the address that it prints."} /></p>
    </main>
  );
}

function useTheme(): [string, () => void] {
  const [theme, set] = useState(localStorage.getItem("theme") ?? (matchMedia("(prefers-color-scheme: light)").matches ? "light" : "dark"));
  useEffect(() => {
    document.documentElement.dataset["theme"] = theme;
  }, [theme]);
  return [theme, () => {
    const next = theme === "dark" ? "light" : "dark";
    localStorage.setItem("theme", next);
    set(next);
  }];
}

const keys = [["/", "search"], ["j  k", "next and previous cluster"], ["Enter", "open the selected cluster"], ["Esc", "clear the search, or go back"], ["t", "switch the theme"], ["?", "show this help"]] as const;

function Help({ close }: { close: () => void }) {
  const box = useRef<HTMLDialogElement>(null);
  useEffect(() => box.current?.showModal(), []);
  return (
    <dialog ref={box} aria-labelledby="help-title" onClose={close}>
      <h2 id="help-title">Keyboard shortcuts</h2>
      <dl class="keys">{keys.map(([k, what]) => <div key={k}><dt><kbd>{k}</kbd></dt><dd>{what}</dd></div>)}</dl>
      <footer><button type="button" class="primary" onClick={close}>Close</button></footer>
    </dialog>
  );
}

const app = document.getElementById("app");
if (app) render(<App />, app);
void start();
