const el = document.createElement("div");
el.addEventListener("click", (e: MouseEvent) => console.log(e.clientX.toFixed()));
const input = document.querySelector<HTMLInputElement>("#x");
console.log(input?.value.length, window.innerWidth.toFixed());
function onKey(e: KeyboardEvent): void {
  if (e.key === "Enter") e.preventDefault();
}
document.addEventListener("keydown", onKey);
async function load(url: string): Promise<unknown> {
  const res: Response = await fetch(url, { method: "POST", headers: new Headers() });
  if (!res.ok) throw new Error(res.statusText);
  return res.json();
}
let timer: ReturnType<typeof setTimeout> | undefined;
const debounce = <A extends unknown[]>(f: (...a: A) => void, ms: number) => (...a: A) => {
  clearTimeout(timer);
  timer = setTimeout(() => f(...a), ms);
};
debounce((n: number) => console.log(n.toFixed()), 3)(1);
load("x").then((r) => console.log(r));
localStorage.setItem("k", "v");
const obs = new IntersectionObserver((entries) => entries.forEach((en) => en.isIntersecting));
obs.disconnect();
requestAnimationFrame((t) => t.toFixed());
const ctl = new AbortController();
ctl.abort();
const st: Storage = sessionStorage;
st.clear();
class MyEl extends HTMLElement {
  connectedCallback() {
    this.innerHTML = "x";
  }
}
customElements.define("my-el", MyEl);
const bl: BlobPart[] = ["a"];
new Blob(bl).size.toFixed();
type Ev = CustomEvent<{ n: number }>;
const ce: Ev = new CustomEvent("a", { detail: { n: 1 } });
ce.detail.n.toFixed();
performance.now().toFixed();
crypto.randomUUID().length;
structuredClone({ a: 1 }).a.toFixed();
alert("x");
const ws = new WebSocket("ws://x");
ws.onmessage = (ev) => console.log(ev.data);
const nodes: NodeListOf<Element> = document.querySelectorAll("p");
nodes.forEach((n) => n.remove());
history.back();
location.href.length;
navigator.userAgent.length;
new FileReader().readAsText(new File([], "x"));
btoa("x").length;
screen.width.toFixed();
