type Node2 = { value: number; next?: Node2 | null; tags?: string[]; run?(n: number): string };
const list: Node2 = {
  value: 1,
  next: { value: 2, next: null, tags: ["a"] },
  run: (n) => n.toFixed(),
};
console.log(
  list.next?.next?.value,
  list.next?.tags?.[0]?.toUpperCase(),
  list.run?.(3).length,
  list.next!.value.toFixed(),
);
let cur: Node2 | null | undefined = list;
while (cur) {
  cur.tags?.forEach((tag, i) => console.log(tag.length + i));
  cur = cur.next;
}
const first = list.tags?.at(0) ?? "none";
console.log(first.length);
let s: string | undefined;
s ??= "d";
s ||= "e";
s &&= "f";
console.log(s.length);
const m = new Map<string, Node2[]>();
(m.get("a") ?? m.set("a", []).get("a")!).push(list);
console.log(m.get("a")?.[0].value.toFixed(), m.size, [...m.keys()].map((k) => k.length));
delete list.next;
const fn = list?.run;
console.log(typeof fn === "function" ? fn(2).trim() : "");
console.log((list as { value: number }).value, (<Node2> list).tags?.length);
