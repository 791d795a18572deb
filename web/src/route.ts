// Addresses within the page.

import { useEffect, useState } from "preact/hooks";

const changed = new Event("drover:navigate");

// go shows another address.
export function go(address: string) {
  history.pushState(null, "", address);
  dispatchEvent(changed);
  scrollTo(0, 0);
}

// replace changes the address without a new entry in the history.
export function replace(address: string) {
  history.replaceState(null, "", address);
  dispatchEvent(changed);
}

// useLocation renders a component whenever the address changes.
export function useLocation(): { path: string; search: string } {
  const [at, set] = useState({ path: location.pathname, search: location.search });
  useEffect(() => {
    const listener = () => set({ path: location.pathname, search: location.search });
    addEventListener("popstate", listener);
    addEventListener(changed.type, listener);
    return () => {
      removeEventListener("popstate", listener);
      removeEventListener(changed.type, listener);
    };
  }, []);
  return at;
}

// follow handles a click on a link within the page. Other clicks, such as with Ctrl, are the
// browser's.
export function follow(e: MouseEvent) {
  if (e.defaultPrevented || e.button !== 0 || e.metaKey || e.ctrlKey || e.shiftKey || e.altKey) return;
  const a = (e.target as Element).closest("a[href]");
  const href = a?.getAttribute("href") ?? "";
  if (!href.startsWith("/") || href.startsWith("/api/") || a?.hasAttribute("download")) return;
  e.preventDefault();
  go(href);
}
