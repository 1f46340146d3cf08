const palette = { red: [255, 0, 0], green: "#00ff00" } satisfies Record<string, string | number[]>;
console.log(palette.red.map((x) => x.toString(16)), palette.green.toUpperCase());
const routes = { home: { path: "/", exact: true }, user: { path: "/u" } } as const satisfies Record<
  string,
  { path: string; exact?: boolean }
>;
console.log(routes.home.path.length, routes.home.exact, routes.user.path.startsWith("/"));
type Keys = keyof typeof routes;
const k: Keys = "home";
console.log(routes[k].path);
const pair = ["a", 1] as const;
console.log(pair[0].length, pair[1].toFixed(), pair.length);
const tup = [1, "x"] satisfies [number, string];
console.log(tup[1].length);
const dict = { a: 1, b: 2 };
for (const [key, val] of Object.entries(dict)) console.log(key.length, val.toFixed());
const frozen = Object.freeze({ n: 1, list: [1] });
console.log(frozen.n.toFixed(), frozen.list.length);
