class Temp {
  static readonly FREEZE = 32;
  private _c = 0;
  protected log: string[] = [];
  get celsius() {
    return this._c;
  }
  set celsius(v) {
    this._c = v;
    this.log.push(`set ${v.toFixed(1)}`);
  }
  get fahrenheit(): number {
    return this._c * 9 / 5 + Temp.FREEZE;
  }
  set fahrenheit(v: number | string) {
    this.celsius = (Number(v) - 32) * 5 / 9;
  }
  static from(init: Partial<Pick<Temp, "celsius">>): Temp {
    return Object.assign(new Temp(), init);
  }
}
class Loud extends Temp {
  override get celsius() {
    return super.celsius + 1;
  }
  override set celsius(v) {
    super.celsius = v;
  }
  history() {
    return this.log.slice().reverse().join();
  }
}
const t = new Loud();
t.celsius = 4;
t.fahrenheit = "50";
t.celsius += 2;
t.celsius++;
console.log(
  t.history().split(",").length,
  t.fahrenheit.toFixed(2),
  Temp.from({ celsius: 2 }).celsius.toString(),
);
const obj = {
  _v: 1,
  get v(): number {
    return this._v;
  },
  set v(x) {
    this._v = x;
  },
  ["comp" + 1]: 3,
};
obj.v = 3;
obj.v++;
console.log(obj.v.toFixed(), obj._v);
