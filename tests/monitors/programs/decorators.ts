function logged<T extends (...args: any[]) => any>(f: T, ctx: ClassMethodDecoratorContext): T {
  console.log(String(ctx.name), ctx.kind.length);
  return f;
}
function sealed<C extends new (...a: any[]) => object>(c: C, ctx: ClassDecoratorContext) {
  console.log(ctx.name?.length);
  return c;
}
@sealed
class Job {
  name = "j";
  @logged
  run(n: number): string {
    return this.name.repeat(n);
  }
  @logged
  static make() {
    return new Job();
  }
}
console.log(new Job().run(2).length, Job.make().name.toUpperCase());
