function find(grid: number[][], goal: number): [number, number] | null {
  outer: for (let i = 0; i < grid.length; i++) {
    inner: for (let j = 0; j < grid[i].length; j++) {
      if (grid[i][j] < 0) continue outer;
      if (grid[i][j] === goal) return [i, j];
      if (j > 100) break inner;
    }
  }
  block: {
    if (goal > 3) break block;
    console.log("small");
  }
  return null;
}
const at = find([[1, 2], [3]], 3);
console.log(at?.[0].toFixed(), at !== null ? at[1].toString() : "");
let i = 0;
do {
  i++;
  if (i === 3) continue;
} while (i < 5);
for (;;) if (i-- <= 0) break;
var v = 1, w = "a", u;
u = w;
console.log(v.toFixed(), u.length);
switch (true) {
  case i > 3: {
    const t = i;
    console.log(t.toFixed());
    break;
  }
  default:
    console.log(w.at(0));
}
loop: while (true) {
  switch (i) {
    case 0:
      break loop;
    default:
      break;
  }
}
