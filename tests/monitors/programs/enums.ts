enum Dir {
  Up = "UP",
  Down = "DOWN",
}
const enum Bits {
  None = 0,
  A = 1 << 0,
  B = 1 << 1,
  AB = A | B,
}
enum Mixed {
  Yes = "YES",
  No = 0,
}
function turn(d: Dir): Dir {
  switch (d) {
    case Dir.Up:
      return Dir.Down;
    case Dir.Down:
      return Dir.Up;
  }
}
const all = Object.values(Dir).map((v) => v.toLowerCase());
const keys = Object.keys(Dir) as (keyof typeof Dir)[];
for (const k of keys) console.log(Dir[k].length, turn(Dir[k]));
let flags: Bits = Bits.A;
flags |= Bits.B;
flags &= ~Bits.A;
console.log(
  (flags & Bits.AB) === Bits.B,
  all.includes("up"),
  Mixed.Yes.charCodeAt(0),
  Mixed.No.toFixed(),
);
const names: Record<Dir, string> = { [Dir.Up]: "u", [Dir.Down]: "d" };
console.log(names[Dir.Up].repeat(2), names.UP.length);
enum Suit {
  Clubs,
  Hearts,
}
const label: string = Suit[Suit.Clubs];
const n: number = Suit["Hearts"];
console.log(label.length + n);
for (const s in Suit) if (isNaN(Number(s))) console.log(s.trim());
